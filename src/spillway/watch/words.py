"""Events of the journal as sentences; health of a class, and why."""

from collections.abc import Mapping
from typing import Any

from spillway.hosts.virtual.replay import LATE
from spillway.journal.entries import Event
from spillway.model import Target
from spillway.watch.views import Health, Pace, Said

SHEDS = 0.005  # of what is offered: less is not worth a word


def said_of(event: Event) -> Said | None:
    """None for what is no news: shares move at every redistribution."""
    if event.kind == "quota":
        return None
    given = event.fields
    about = given.get("class_name") or given.get("query") or given.get("gate") or ""
    return Said(
        time_s=event.time_s, kind=event.kind, text=_sentence(event.kind, given), about=str(about)
    )


def _sentence(kind: str, given: Mapping[str, Any]) -> str:
    who = f" by {given['by']}" if given.get("by") else ""
    match kind:
        case "started":
            return f"the flow has started, with {len(given.get('queries', ()))} queries"
        case "stopped":
            return "the flow was stopped"
        case "warmed up":
            return f"warmed up for {given.get('seconds')} s"
        case "restarted":
            return f"{given.get('query')} was started again: {given.get('error')}"
        case "changed":
            was = f" (was {given['was']})" if given.get("was") else ""
            return f"{given.get('key')} is {given.get('to')}{was}{who}"
        case "cleared":
            return f"{given.get('key')} is as in the flow file again: {given.get('to')}{who}"
        case "condition":
            return f"{given.get('class_name')}: {given.get('condition')}"
        case "budget":
            return f"{given.get('query')}: {given.get('verdict')}"
        case "room":
            return f"{given.get('withheld_slots')} slots withheld from classes that are not spared"
        case "executors":
            return f"{given.get('total')} executors asked for: {given.get('reason')}"
        case "executors lost":
            return f"lost and being replaced: executors {', '.join(given.get('names', ()))}"
        case "executors missing":
            missing, there = given.get("missing"), given.get("there")
            return f"the cluster does not give {missing} executors more: there are {there}"
        case "cores":
            return f"{given.get('cores')} cores now"
        case "losses":
            return _losses(given)
        case "lost":
            return f"{given.get('lines')} lines of the journal could not be written"
    return _of_a_cluster(kind, given)


def _of_a_cluster(kind: str, given: Mapping[str, Any]) -> str:
    """What a coordinator tells, and whatever has no words of its own."""
    match kind:
        case "given" | "moved" | "follows" | "cuts" | "takes":
            return _moved(kind, given)
        case "asked":
            return f"{given.get('request')}: {given.get('done') or given.get('error')}"
        case "node gone":
            return f"node {given.get('node')} is gone"
        case "node asked for":
            return f"node {given.get('node')} is started: {given.get('reason')}"
        case "decides" | "advises":
            about = f"{given.get('action')} {given.get('subject')}"
            return f"the coordinator {kind}: {about}: {given.get('reason')}"
    if "said" in given:
        return str(given["said"])
    rest = ", ".join(f"{name} {value}" for name, value in given.items())
    return f"{kind}: {rest}" if rest else kind


def _moved(kind: str, given: Mapping[str, Any]) -> str:
    query, node = given.get("query"), given.get("node")
    origin = f", before on {given['moved_from']}" if given.get("moved_from") else ""
    why = f": {given['reason']}" if given.get("reason") else ""
    doing = {
        "follows": "is followed by its successor",
        "cuts": "is about to be cut",
        "takes": "was cut: its later windows are its successor's",
    }
    return f"{query} {doing.get(kind, 'runs')} on {node}{origin}{why}"


def _losses(given: Mapping[str, Any]) -> str:
    words = {
        "malformed_tuples": "malformed",
        "dropped_tuples": "dropped by the log before they were planned",
        "vanished_tuples": "gone from the log before they were read",
    }
    found = [f"{given[name]} {word}" for name, word in words.items() if given.get(name)]
    return f"{given.get('gate')}: {', '.join(found) or 'no losses'}"


def health_of(
    pace: Pace, target: Target, states: list[str], condition: str | None, reason: str
) -> tuple[Health, str]:
    """The verdict on a class, and a sentence that says why."""
    if condition is not None and "cannot be met" in condition:
        return "missed", condition
    delay, shed = _delay(pace, target), _shed(pace)
    if any(state.startswith("catching") for state in states):
        return "catching up", reason or delay
    if pace.delay_s is not None and pace.delay_s > LATE * target.delay_s:
        return "late", "; ".join(filter(None, [delay, shed, reason]))
    if states and all(state in ("starting", "restarting", "warming up") for state in states):
        return "starting", ", ".join(sorted(set(states)))
    if condition is not None:
        return "quiet", condition
    if pace.delay_s is None:
        return "quiet", "nothing was delivered in the last seconds"
    if shed:
        return "shedding", f"{delay}; {shed}: {reason}"
    return "good", delay


def _delay(pace: Pace, target: Target) -> str:
    if pace.delay_s is None:
        return ""
    return f"{target.statistic} delay {pace.delay_s:.2f} s of {target.delay_s:g} s"


def _shed(pace: Pace) -> str:
    decided = pace.kept_per_s + pace.shed_per_s
    share = pace.shed_per_s / decided if decided > 0.0 else 0.0
    return f"sheds {share:.1%} of {pace.offered_per_s:,.0f} tuples/s" if share > SHEDS else ""

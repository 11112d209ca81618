"""What a report says of a run: read from its journal and its ledgers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.ledger import Audit
from spillway.hosts.spark.files import Folder, audits
from spillway.hosts.virtual.replay import late_ratio
from spillway.journal.entries import Entry, Event
from spillway.journal.files import read_journal
from spillway.model import Decided, Measurement
from spillway.watch.story import Story
from spillway.watch.views import Said
from spillway.watch.what_if import WhatIf
from spillway.watch.words import said_of

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
REASONS_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class ClassFacts:
    name: str
    target: str
    offered_tuples: int
    shed_tuples: int
    delay_s: float | None  # the target's statistic of each period, averaged over tuples
    worst_s: float | None
    late_ratio: float

    @property
    def shed_ratio(self) -> float:
        return self.shed_tuples / max(1, self.offered_tuples)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.delay_s is None:
            return "delivered nothing"
        kept = "shed nothing" if self.shed_tuples == 0 else f"shed {self.shed_ratio:.2%}"
        if self.late_ratio == 0.0:
            return f"held its target throughout and {kept}"
        held = 1.0 - self.late_ratio
        return f"held its target for {held:.1%} of its tuples and {kept}"


@dataclass(frozen=True, kw_only=True)
class Facts:
    flow: str
    from_s: float
    until_s: float
    started: Mapping[str, Any]
    story: Story
    classes: tuple[ClassFacts, ...]
    reasons: tuple[tuple[str, str, int], ...]  # query, reason without its numbers, tuples shed
    events: tuple[Said, ...]
    audits: tuple[Audit, ...]
    decided: tuple[Decided, ...] = field(repr=False)  # of the last run
    what_if: WhatIf | None = None


def facts_of(root: Path, since_s: float, until_s: float) -> Facts:
    """Between two times, of all runs in the folder."""
    folder, story = Folder(root=root), Story()
    started: Mapping[str, Any] = {}
    decided: list[Decided] = []
    last_run: list[Decided] = []
    events: list[Said] = []
    for entry in read_journal(folder.journal):
        if isinstance(entry, Event) and entry.kind == "started":
            started, last_run = entry.fields, []
            story.tell([entry])
        if not since_s <= _time_of(entry) <= until_s:
            continue
        if isinstance(entry, Decided):
            decided.append(entry)
            last_run.append(entry)
            story.tell([entry])
        else:
            if entry.kind != "started":
                story.tell([entry])
            events += [said] if (said := said_of(entry)) else []
    if not decided:
        raise SpillwayError(
            f"{folder.journal} holds no decision between these times: give other --since, --until"
        )
    times_s = [d.measurement.time_s for d in decided]
    return Facts(
        flow=root.name,
        from_s=min(times_s),
        until_s=max(times_s),
        started=started,
        story=story,
        classes=tuple(sorted(_classes(decided), key=lambda one: _rank(one.name, started))),
        reasons=_reasons(decided),
        events=tuple(events),
        audits=tuple(_audits(folder)),
        decided=tuple(last_run or decided),
    )


def _rank(name: str, started: Mapping[str, Any]) -> tuple[int, str]:
    """The highest priority first."""
    return -int(started.get("classes", {}).get(name, {}).get("priority", 0)), name


def _time_of(entry: Entry) -> float:
    return entry.measurement.time_s if isinstance(entry, Decided) else entry.time_s


def _classes(decided: Iterable[Decided]) -> Iterable[ClassFacts]:
    by_class: dict[str, list[Measurement]] = {}
    for each in decided:
        by_class.setdefault(each.measurement.class_name, []).append(each.measurement)
    for name, measured in by_class.items():
        known = [m for m in measured if m.delay_s is not None and m.completed_tuples > 0]
        completed = sum(m.completed_tuples for m in known)
        total_s = sum((m.delay_s or 0.0) * m.completed_tuples for m in known)
        yield ClassFacts(
            name=name,
            target=str(measured[-1].target),
            offered_tuples=sum(m.offered_tuples for m in measured),
            shed_tuples=sum(m.shed_tuples for m in measured),
            delay_s=total_s / completed if completed else None,
            worst_s=max((m.delay_s or 0.0 for m in known), default=None),
            late_ratio=late_ratio(measured),
        )


def _reasons(decided: Iterable[Decided]) -> tuple[tuple[str, str, int], ...]:
    """What was shed after a decision was counted by the next one of its query."""
    found: Counter[tuple[str, str]] = Counter()
    before: dict[str, str] = {}
    for each in decided:
        query = each.measurement.query
        if each.measurement.shed_tuples and query in before:
            found[query, before[query]] += each.measurement.shed_tuples
        before[query] = _NUMBER.sub("…", each.decision.reason)
    shown = found.most_common(REASONS_SHOWN)
    return tuple((query, reason, tuples) for (query, reason), tuples in shown)


def _audits(folder: Folder) -> Iterable[Audit]:
    for ledger in sorted((folder.root / "ledgers").glob("*.jsonl")):
        query = ledger.name.partition(".")[0]
        checkpoint = folder.checkpoint(query)
        yield from audits(ledger, checkpoint if checkpoint.exists() else None, shown=0)

"""The last minutes of a journal, decided again: by other load managers, and for other targets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spillway.errors import SpillwayError
from spillway.hosts.virtual.replay import QueryReplay, replayed
from spillway.model import Decided, Target

LONGEST_S = 900.0  # of a journal that is decided again
FACTORS = (0.5, 2.0)  # of each class's target
_PEERS = ("none", "ctrl", "aloma", "seamless", "pid", "pie")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a law would have made of the recorded arrivals and prices, over all queries."""

    what: str
    shed_ratio: float
    late_ratio: float  # of the tuples that were kept
    of: Sequence[QueryReplay]


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """`recorded` is what happened, `again` the same settings in virtual time: what follows is to be
    compared with `again`, and believed as far as that is like `recorded`."""

    seconds: float
    recorded: Run
    again: Run
    others: tuple[Run, ...]


def what_if(
    entries: Sequence[Decided], started: Mapping[str, Any], targets: Mapping[str, str] | None = None
) -> WhatIf:
    """`targets` by class: only these, instead of other laws and of FACTORS."""
    last_s = max((d.measurement.time_s for d in entries), default=0.0)
    recent = [d for d in entries if d.measurement.time_s > last_s - LONGEST_S]
    if not recent:
        raise SpillwayError("the journal holds no decisions in this time")
    law = _law(started)
    again = replayed(recent, *law, started)
    others = _targets(recent, law, started, targets) if targets else _all(recent, law, started)
    return WhatIf(
        seconds=last_s - recent[0].measurement.time_s,
        recorded=_recorded(again),
        again=_run(f"as it was set ({law[0]})", again),
        others=tuple(others),
    )


def _all(
    recent: Sequence[Decided], law: tuple[str, dict[str, Any]], started: Mapping[str, Any]
) -> Iterator[Run]:
    now = {d.measurement.class_name: d.measurement.target for d in recent}
    for factor in FACTORS:
        for name, target in now.items():
            wanted = replace(target, delay_s=factor * target.delay_s)
            yield from _targets(recent, law, started, {name: str(wanted)})
    for peer in _PEERS:
        if peer != law[0]:
            yield _run(f"load manager {peer}", replayed(recent, peer, {}, started))


def _targets(
    recent: Sequence[Decided],
    law: tuple[str, dict[str, Any]],
    started: Mapping[str, Any],
    targets: Mapping[str, str],
) -> Iterator[Run]:
    wanted = {name: Target.parse(text) for name, text in targets.items()}
    changed = [
        replace(d, measurement=replace(d.measurement, target=wanted[d.measurement.class_name]))
        if d.measurement.class_name in wanted
        else d
        for d in recent
    ]
    words = ", ".join(f"{name} {target}" for name, target in wanted.items())
    yield _run(f"target {words}", replayed(changed, *law, started))


def _law(started: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Of the first class: a run in virtual time has one for all."""
    for given in started.get("classes", {}).values():
        manager = given.get("manager", "predictive")
        if isinstance(manager, str):
            return manager, {}
        return manager["law"], {k: v for k, v in manager.items() if k != "law"}
    return "predictive", {}


def _run(what: str, found: Sequence[QueryReplay]) -> Run:
    return Run(
        what=what,
        shed_ratio=_mean(((1.0 - one.kept_ratio), one.offered_tuples) for one in found),
        late_ratio=_mean((one.late_ratio, one.offered_tuples * one.kept_ratio) for one in found),
        of=tuple(found),
    )


def _recorded(found: Sequence[QueryReplay]) -> Run:
    shed = ((1.0 - one.recorded_kept_ratio, float(one.offered_tuples)) for one in found)
    late = (
        (one.recorded_late_ratio, one.offered_tuples * one.recorded_kept_ratio) for one in found
    )
    return Run(
        what="as it was recorded", shed_ratio=_mean(shed), late_ratio=_mean(late), of=tuple(found)
    )


def _mean(weighted: Iterable[tuple[float, float]]) -> float:
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total > 0.0 else 0.0

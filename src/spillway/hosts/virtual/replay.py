"""A recorded run, decided again by another load manager.

The journal says what every query was offered, period by period, and what its batches cost. That is
a machine and a load; which tuples were kept was the law's doing and is left to the new one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spillway.classes.control import ClassTerms
from spillway.classes.policies import POLICIES
from spillway.errors import SpillwayError, shown, unknown_name
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import RecordedCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.load import laws
from spillway.model import Decided, Measurement, Target, parse_duration_s

_LONGEST_S = 366 * 86_400.0  # of a journal
_LATEST_S = 1e11
_MOST_TUPLES = 1 << 53
_CORES = 2  # where a journal does not say
_HINDSIGHT = 10  # decisions: what a batch took is known when those after it have been learned from
LATE = 1.05  # of the target: it counts as held up to here


@dataclass(frozen=True, kw_only=True)
class QueryReplay:
    """One query, as it was and as it would have been."""

    query: str
    class_name: str
    target: Target
    offered_tuples: int
    recorded_kept_ratio: float
    recorded_delay_s: float | None
    kept_ratio: float
    delay_s: float | None
    recorded_late_ratio: float = 0.0  # of the tuples: those of periods above the target
    late_ratio: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Control:
    """How the driver of the recorded run looked at its classes."""

    policy: str
    period_s: float
    cycle: int

    @classmethod
    def of(cls, started: Mapping[str, Any]) -> "Control":
        known = _table(started.get("control"), "control")
        policy, cycle = str(known.get("policy", "dilos")), known.get("cycle", 2)
        if policy not in POLICIES:
            raise unknown_name("policy of the journal's run", policy, POLICIES)
        return cls(
            policy=policy,
            period_s=parse_duration_s(str(known.get("period", "1s")), "the journal's period"),
            cycle=_whole(cycle, "cycle", 1000),
        )


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise SpillwayError(f"the journal's '{name}' is no table: it is damaged")
    return value or {}


def _whole(value: Any, name: str, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise SpillwayError(f"the journal's '{name}' is {shown(value)}: it must be 1 to {most}")
    return value


def replayed(
    entries: Iterable[Decided],
    manager: str,
    settings: Mapping[str, Any],
    started: Mapping[str, Any],
    seed: int = 0,
) -> list[QueryReplay]:
    """`started` is the journal's first event: classes, their priorities, and the cores."""
    runs: dict[str, list[Decided]] = defaultdict(list)
    for decided in entries:
        runs[decided.measurement.query].append(decided)
    runs = {name: run for name, run in runs.items() if _is_usable(run)}
    if not runs:
        raise SpillwayError(
            "the journal holds no query with decisions and learned prices: record a run of at"
            " least some batches with `spillway run`"
        )
    for run in runs.values():
        for decided in run:
            _require_sane(decided.measurement)
    began_s = min(run[0].measurement.time_s - run[0].measurement.period_s for run in runs.values())
    ends_s = max(run[-1].measurement.time_s for run in runs.values()) - began_s
    if not ends_s <= _LONGEST_S:
        raise SpillwayError(f"the journal spans {ends_s:g}s: its times are damaged")
    control = Control.of(started)
    given = GateOptions.parse({"manager": manager, **_as_options(settings)})
    options = replace(given, period_s=control.period_s)
    queries = [_query(name, run, options, began_s) for name, run in runs.items()]
    host = VirtualHost(
        queries,
        _terms(runs, started, manager),
        cores=_whole(started.get("cores", _CORES), "cores", 100_000),
        policy=control.policy,
        period_s=control.period_s,
        cycle_periods=control.cycle,
        seed=seed,
    )
    host.advance(ends_s)
    return [_outcome(host, name, run) for name, run in runs.items()]


def _require_sane(measured: Measurement) -> None:
    """What was damaged or made up could keep virtual time going for ever."""
    counts = (measured.offered_tuples, measured.admitted_tuples, measured.shed_tuples)
    prices = measured.prices
    costs_s = () if prices is None else (prices.fixed_s, prices.kept_s, prices.scanned_s)
    times_s = (measured.time_s, measured.period_s)
    if not (
        all(0 <= count < _MOST_TUPLES for count in (*counts, measured.completed_tuples))
        and all(0.0 <= time_s < _LATEST_S for time_s in times_s)
        and all(0.0 <= cost_s < _LONGEST_S for cost_s in costs_s)
        and (prices is None or (0.0 < prices.pace < 1e6 and 0.0 <= prices.noise < 1e6))
    ):
        raise SpillwayError(
            f"the journal holds a measurement of query '{shown(measured.query)}' at"
            f" {measured.time_s:g}s that cannot be: it is damaged"
        )


def _is_usable(run: list[Decided]) -> bool:
    return any(decided.measurement.prices is not None for decided in run)


def _query(name: str, run: list[Decided], options: GateOptions, began_s: float) -> VirtualQuery:
    measured = [decided.measurement for decided in run]
    times_s, counts = [0.0], [0.0]
    for m in measured:
        starts_s = max(times_s[-1], m.time_s - m.period_s - began_s)
        if starts_s > times_s[-1]:
            times_s.append(starts_s)
            counts.append(counts[-1])
        times_s.append(max(starts_s + 1e-6, m.time_s - began_s))
        counts.append(counts[-1] + m.offered_tuples)
    known = [(m.time_s - began_s, m.prices) for m in measured if m.prices is not None]
    learned = [prices for _, prices in known[_HINDSIGHT:]] or [known[-1][1]]
    return VirtualQuery(
        name=name,
        log=CurveLog(np.array(times_s), np.array(counts)),
        options=replace(
            options, target=measured[0].target, class_name=measured[0].class_name, query=name
        ),
        cost=RecordedCost(times_s=[t for t, _ in known][: len(learned)], prices=learned),
    )


def _as_options(settings: Mapping[str, Any]) -> dict[str, str]:
    def written(value: Any) -> str:
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    return {f"manager.{name}": written(value) for name, value in settings.items()}


def _terms(
    runs: Mapping[str, list[Decided]], started: Mapping[str, Any], manager: str
) -> dict[str, ClassTerms]:
    given, found = _table(started.get("classes"), "classes"), {}
    for run in runs.values():
        measured = run[0].measurement
        known = _table(given.get(measured.class_name), measured.class_name)
        lend = known.get("lend", 1.0)
        if type(lend) not in (int, float) or not 0.0 <= lend <= 1.0:
            raise SpillwayError(f"the journal's 'lend' is {shown(lend)}: it must be 0 to 1")
        found[measured.class_name] = ClassTerms(
            priority=_whole(known.get("priority", 1), "priority", 1000),
            target=measured.target,
            lend=float(lend),
            adapts=laws.find(manager).adapts,
        )
    return found


def _outcome(host: VirtualHost, name: str, run: list[Decided]) -> QueryReplay:
    measured, lane = [decided.measurement for decided in run], host.lanes[name]
    again = [d.measurement for d in host.decided if d.measurement.query == name]
    admitted = sum(m.admitted_tuples for m in measured)
    shed = sum(m.shed_tuples for m in measured)
    totals = lane.at.totals
    return QueryReplay(
        query=name,
        class_name=measured[0].class_name,
        target=measured[0].target,
        offered_tuples=sum(m.offered_tuples for m in measured),
        recorded_kept_ratio=admitted / max(1, admitted + shed),
        recorded_delay_s=_delay_s(measured),
        kept_ratio=totals.admitted / max(1, totals.admitted + totals.shed),
        delay_s=_delay_s(again),
        recorded_late_ratio=late_ratio(measured),
        late_ratio=late_ratio(again),
    )


def late_ratio(measured: list[Measurement]) -> float:
    """The part of the tuples that completed in periods whose delay was above the target."""
    known = [m for m in measured if m.delay_s is not None]
    late = sum(m.completed_tuples for m in known if (m.delay_s or 0.0) > LATE * m.target.delay_s)
    return late / max(1, sum(m.completed_tuples for m in known))


def _delay_s(measured: list[Measurement]) -> float | None:
    """The target's statistic of each period, averaged over the tuples: alike for both runs."""
    known = [(m.delay_s, m.completed_tuples) for m in measured if m.delay_s is not None]
    completed = sum(tuples for _, tuples in known)
    return sum(delay_s * n for delay_s, n in known) / completed if completed else None

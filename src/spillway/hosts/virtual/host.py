"""The gates of many queries in virtual time: micro-batches on a machine that is only arithmetic.

What runs here is what runs on Spark: the same gate, the same class control, in Spark's order: a
batch ends, its query is asked at once, reports, waits for its turn, and plans from what waits then.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol

import numpy as np

from spillway.classes.balance import Balance
from spillway.classes.control import ClassControl, ClassTerms
from spillway.classes.turns import batches_in_flight
from spillway.errors import require
from spillway.gate.company import Part
from spillway.gate.gate import Gate
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.planning import survey
from spillway.gate.rules import Stretch
from spillway.hosts.virtual.machine import BatchCost, Cost
from spillway.model import Decided, Report
from spillway.ports import ArrivalCurve, LoadManager, Span

Factor = Callable[[float], float]  # of time


def _even(time_s: float) -> float:
    return 1.0


class VirtualLog(Protocol):
    """A log whose future is known."""

    def extent(self, now_s: float) -> tuple[Span, ...]: ...

    def arrivals(self, span: Span) -> ArrivalCurve: ...

    def next_arrival_s(self, position: int) -> float | None:
        """When the first tuple from a position on arrives; None: never."""
        ...


@dataclass(frozen=True, kw_only=True)
class VirtualQuery:
    """One query over a stream of its own."""

    name: str
    log: VirtualLog
    options: GateOptions
    cost: Cost = field(default_factory=BatchCost)
    law: LoadManager | None = None  # None: the one that the options name


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A batch that has ended."""

    batch: Offset
    part: Part
    duration_s: float
    ended_s: float


@dataclass(kw_only=True)
class _Lane:
    """One query between its batches."""

    query: VirtualQuery
    gate: Gate
    at: Offset
    rng: np.random.Generator
    report: Report | None = None  # while it asks for its turn
    batch: Offset | None = None  # while it runs
    duration_s: float = 0.0
    waits_for_arrival: bool = False
    finished: list[Finished] = field(default_factory=list)


class VirtualHost:
    """`cost_factor` makes tuples dearer, `speed` slows the whole machine, both over time."""

    def __init__(
        self,
        queries: Sequence[VirtualQuery],
        classes: Mapping[str, ClassTerms],
        *,
        cores: int = 1,
        policy: str = "dilos",
        period_s: float = 1.0,
        cycle_periods: int = 5,
        seed: int = 0,
    ) -> None:
        require(len(queries) > 0, "number of queries", 0, "at least 1")
        require(cores >= 1, "number of cores", cores, "at least 1")
        self.now_s = 0.0
        self._cores = cores
        self.cost_factor: Factor = _even
        self.speed: Factor = _even
        self.decided: list[Decided] = []
        self.quotas: list[tuple[float, Mapping[str, Balance]]] = []
        self.control = ClassControl(
            classes,
            policy,
            slots=batches_in_flight(cores, [c.priority for c in classes.values()]),
            machine=float(cores),
            cycle_periods=cycle_periods,
            now_s=0.0,
        )
        self.lanes = {q.name: _lane(q, index, seed) for index, q in enumerate(queries)}
        self._period_s = period_s
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._looks_s = 0.0  # when somebody may become eligible by time alone
        self._at(period_s, self._period_ended)
        for lane in self.lanes.values():
            self._at(0.0, partial(self._trigger, lane))

    def advance(self, until_s: float) -> None:
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, happen = heapq.heappop(self._events)
            happen()
        self.now_s = until_s

    def _at(self, time_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), happen))

    # -- a query from the end of a batch to the start of the next

    def _trigger(self, lane: _Lane) -> None:
        """Spark asks: what waits, and is it this query's turn?"""
        self._rest(lane)
        lane.waits_for_arrival = False
        waiting = survey(lane.at, lane.query.log.extent(self.now_s), lane.query.log.arrivals)
        report = lane.gate.report(lane.at, waiting.arrivals, self.now_s)
        self.control.heard(report, self.now_s)
        self.decided += report.decided
        lane.gate.reported()
        if waiting.tuples == 0:
            self._await_arrival(lane)
        else:
            lane.report = report
            self.control.ask(report, self.now_s)
        self._grant()

    def _await_arrival(self, lane: _Lane) -> None:
        arrives_s = lane.query.log.next_arrival_s(lane.at.stretches[0].stop)
        lane.waits_for_arrival = True
        self._at(self.now_s + lane.query.options.period_s, partial(self._rest, lane))
        if arrives_s is not None:
            self._at(max(self.now_s, arrives_s), partial(self._trigger, lane))

    def _rest(self, lane: _Lane) -> None:
        """On Spark a gate says again and again that nothing waits: what counts is that a period has
        passed, and how long it lasted."""
        if lane.waits_for_arrival:
            lane.gate.rest(lane.at, self.now_s)

    def _grant(self) -> None:
        for name in self.control.grant(self.now_s):
            lane = self.lanes[name]
            assert lane.report is not None
            lane.gate.obey(self.control.order(lane.report, may_start=True))
            lane.report = None
            self._start(lane)
        next_s = self.control.turns.next_s(self.now_s)
        if next_s is not None and not self.now_s < self._looks_s <= next_s:
            self._looks_s = next_s
            self._at(next_s, self._grant)

    def _start(self, lane: _Lane) -> None:
        log, cost = lane.query.log, lane.query.cost
        waiting = survey(lane.at, log.extent(self.now_s), log.arrivals)
        lane.batch = batch = lane.gate.plan(lane.at, waiting, self.now_s)
        kept, scanned = batch.kept_tuples(), batch.scanned_tuples
        factor = self.cost_factor(self.now_s)
        even_s = cost.duration_s(kept, scanned, self.now_s, factor, lane.rng)
        running = sum(other.batch is not None for other in self.lanes.values())
        lane.duration_s = even_s * max(1.0, running / self._cores) / self.speed(self.now_s)
        self._at(self.now_s + lane.duration_s, partial(self._end, lane))

    def _end(self, lane: _Lane) -> None:
        batch, lane.batch = lane.batch, None
        assert batch is not None
        lane.at = batch
        part = lane.gate.part(batch)
        lane.gate.ended([part], duration_s=lane.duration_s, ended_s=self.now_s)
        lane.finished.append(
            Finished(batch=batch, part=part, duration_s=lane.duration_s, ended_s=self.now_s)
        )
        self._trigger(lane)

    def _period_ended(self) -> None:
        decided = self.control.period_ended(self.now_s)
        if decided:
            self.quotas.append((self.now_s, decided))
        self._at(self.now_s + self._period_s, self._period_ended)
        self._grant()


def _lane(query: VirtualQuery, index: int, seed: int) -> _Lane:
    gate = Gate(query.options, query.law)
    at = Offset(
        gate=query.name,
        began_us=0,
        seq=0,
        planned_us=0,
        stretches=(Stretch(partition=0, start=0, read=0, stop=0),),
    )
    gate.resume(at)
    return _Lane(query=query, gate=gate, at=at, rng=np.random.default_rng([seed, index]))

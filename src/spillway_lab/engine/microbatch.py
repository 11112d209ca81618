"""Spark's engine: queries in micro-batches, each planned when the previous one has ended."""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from spillway.errors import require
from spillway.load.batch_model import BatchModel
from spillway.model import (
    ADMIT_ALL,
    BatchRecord,
    Decision,
    KeepFraction,
    KeepOfBacklog,
    Measurement,
    Target,
)
from spillway_lab.engine.batches import Gate, Query
from spillway_lab.engine.inputs import backlog_of, checked_arrivals
from spillway_lab.engine.state import Counts, classes_of
from spillway_lab.engine.statistics import DelayRecord, Floats, Totals, statistic_of
from spillway_lab.engine.steps import NO_BACKGROUND, STEADY, Steps, checked_background


@dataclass
class _View:
    """What one load manager looks at: the gates of its class, or a single one at its trigger.

    The cost that it is told is the learned c alone: the fixed part of a batch counts against the
    headroom. (With it, a law that sheds more sees a higher cost per tuple, and sheds still more.)
    """

    gates: list[Gate]
    time_s: float = 0.0
    counts: Counts = field(default_factory=Counts)
    model: BatchModel = field(default_factory=BatchModel)
    batches: list[BatchRecord] = field(default_factory=list)
    delays_s: list[Floats] = field(default_factory=list)


class MicroBatchPlant:
    """Queries that share cores; each plans a batch as soon as it can, from what waits then.

    A class in `at_triggers` is asked for a decision at every planning (`advance` returns False,
    and `observe` gives the measurement of that one gate). For the others the last decision stands:
    a share is applied to the backlog whenever a batch is planned; a count sheds at once.
    """

    def __init__(
        self,
        queries: Sequence[Query] | Query,
        arrivals: Mapping[str, Floats] | Floats,
        *,
        target: Target | Mapping[str, Target],
        cores: int = 1,
        cost_trace: Steps = STEADY,
        background: Steps = NO_BACKGROUND,
        max_shed: float = 0.99,
        seed: int = 0,
    ) -> None:
        queries = [queries] if isinstance(queries, Query) else list(queries)
        require(len(queries) > 0, "number of queries", 0, "at least 1")
        require(cores >= 1, "number of cores", cores, "at least 1")
        require(0.0 <= max_shed <= 1.0, "largest shed fraction", max_shed, "0 to 1")
        if not isinstance(arrivals, Mapping):
            arrivals = {queries[0].name: arrivals}
        times_s = checked_arrivals([query.name for query in queries], arrivals)
        self.now_s = 0.0
        self.gates = [Gate(q, i, times_s[i], seed) for i, q in enumerate(queries)]
        self.classes = classes_of([query.class_name for query in queries], target)
        self._cores, self._max_shed = cores, max_shed
        self._cost_trace, self._background = cost_trace, checked_background(background)
        self._standing = dict.fromkeys(self.classes, ADMIT_ALL)  # for batches planned meanwhile
        self._running: list[tuple[float, int]] = []  # heap of (end, gate)
        self._asking: Gate | None = None
        self._at_triggers: frozenset[str] = frozenset()
        self._views: dict[int, _View] = {}  # by gate
        self.begin(1.0)

    def begin(
        self, period_s: float, buffered: Collection[str] = (), at_triggers: Collection[str] = ()
    ) -> None:
        """Before the first advance: statistics are kept in periods of this length."""
        self._at_triggers = frozenset(at_triggers)
        for name, state in self.classes.items():
            state.delays = DelayRecord(period_s)
            gates = self._of(name)
            joint = _View(gates=gates)
            for gate in gates:
                alone = name in self._at_triggers
                self._views[gate.index] = _View(gates=[gate]) if alone else joint

    def _of(self, class_name: str) -> list[Gate]:
        return [gate for gate in self.gates if gate.query.class_name == class_name]

    # -- virtual time

    def advance(self, until_s: float) -> bool:
        """Run until then, or until a gate plans a batch and its class wants to be asked."""
        while True:
            for gate in self.gates:
                gate.arrive(self.now_s)
            if not self._plan():
                return False
            next_s = self._next_event_s()
            if next_s > until_s:
                self.now_s = until_s
                for gate in self.gates:
                    gate.arrive(until_s)
                return True
            self.now_s = next_s
            while self._running and self._running[0][0] <= self.now_s:
                self._finish(self.gates[heapq.heappop(self._running)[1]])

    def _plan(self) -> bool:
        """Start batches while cores are free; False when a load manager must be asked first."""
        while len(self._running) < self._cores:
            ready = [g for g in self.gates if g.pending.size and not g.running.size]
            if not ready:
                return True
            gate = min(ready, key=lambda g: (g.free_since_s, g.index))
            state = self.classes[gate.query.class_name]
            if gate.query.class_name in self._at_triggers and gate.decided is None:
                self._asking = gate
                return False
            action, gate.decided = gate.decided or self._standing[state.name], None
            state.keep_fraction = gate.shed(action, self._max_shed)
            self._start(gate)
        return True

    def _start(self, gate: Gate) -> None:
        factor = self._cost_trace.at(self.now_s)
        speed = 1.0 - self._background.at(self.now_s)
        heapq.heappush(self._running, (gate.start(self.now_s, factor, speed), gate.index))

    def _next_event_s(self) -> float:
        times_s = [self._running[0][0]] if self._running else []
        if len(self._running) < self._cores:
            times_s += [g.next_arrival_s() for g in self.gates if not g.running.size]
        return min(times_s)

    def _finish(self, gate: Gate) -> None:
        state, view = self.classes[gate.query.class_name], self._views[gate.index]
        arrived_s = gate.times_s[gate.running]
        done_s = np.full(arrived_s.size, self.now_s)
        state.delays.add(arrived_s, done_s, state.target.delay_s)
        view.delays_s.append(done_s - arrived_s)
        record = gate.finish(self.now_s)
        view.batches.append(record)
        view.model.learn(record)

    # -- the plant's two ends of the control loop

    def observe(self) -> Iterator[Measurement]:
        """Of the gate that asks; otherwise of every class that decides once a period."""
        if self._asking is not None:
            yield self._measure(self._views[self._asking.index], self._asking.query.class_name)
            return
        for name, state in self.classes.items():
            gates = self._of(name)
            state.queued_tuples = sum(g.pending.size + g.running.size for g in gates)
            state.cost_s = max(self._views[g.index].model.cost_s for g in gates)
            state.queued_load_s = state.queued_tuples * state.cost_s
            if name not in self._at_triggers:
                yield self._measure(self._views[gates[0].index], name)

    def _measure(self, view: _View, class_name: str) -> Measurement:
        state, now_s = self.classes[class_name], self.now_s
        counts = _sum([gate.counts for gate in view.gates])
        new, view.counts = counts.since(view.counts), counts
        period_s, view.time_s = now_s - view.time_s, now_s
        batches, view.batches = tuple(view.batches), []
        delays_s, view.delays_s = view.delays_s, []
        queued = sum(gate.pending.size + gate.running.size for gate in view.gates)
        cost_s = state.cost_s = view.model.cost_s
        rate = cost_s / period_s if period_s > 0.0 else 0.0
        waiting_s = np.concatenate([gate.times_s[gate.pending] for gate in view.gates])
        return Measurement(
            time_s=now_s,
            period_s=max(period_s, 1e-6),
            target=state.target,
            offered_tuples=new.offered,
            admitted_tuples=new.admitted,
            shed_tuples=new.shed,
            completed_tuples=new.completed,
            queued_tuples=queued,
            queued_load_s=queued * cost_s,
            offered_load=new.offered * rate,
            admitted_load=new.admitted * rate,
            cost_s=cost_s,
            delay_s=statistic_of(np.concatenate(delays_s), state.target) if delays_s else None,
            busy_s=sum(batch.duration_s for batch in batches),
            backlog=backlog_of(waiting_s, now_s, state.target),
            batches=batches,
            batch_running=any(gate.running.size for gate in view.gates),
            headroom=state.assigned_headroom,
            class_name=class_name,
        )

    def actuate(self, class_name: str, decision: Decision) -> None:
        state, action = self.classes[class_name], decision.action
        state.decision = decision
        if self._asking is not None:
            self._asking.decided, self._asking = action, None
            return
        if isinstance(action, KeepFraction):
            self._standing[class_name] = action
            return
        self._standing[class_name] = ADMIT_ALL
        gates = self._of(class_name)
        pending = sum(gate.pending.size for gate in gates)
        for gate in gates:  # each gate keeps its part
            part = KeepOfBacklog(tuples=round(action.tuples * gate.pending.size / max(1, pending)))
            state.keep_fraction = gate.shed(part, self._max_shed)

    def set_target(self, class_name: str, target: Target) -> None:
        self.classes[class_name].target = target

    def counts(self, class_name: str) -> Counts:
        return _sum([gate.counts for gate in self._of(class_name)])

    def totals(self, class_name: str) -> Totals:
        """Where every tuple of a class is, counted from what waits and what runs."""
        gates, counts = self._of(class_name), self.counts(class_name)
        return Totals(
            offered_tuples=counts.offered,
            admitted_tuples=counts.admitted,
            shed_tuples=counts.shed,
            pending_tuples=sum(gate.pending.size for gate in gates),
            in_flight_tuples=sum(gate.running.size for gate in gates),
            completed_tuples=counts.completed,
        )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(*(sum(column) for column in zip(*counts, strict=True)))

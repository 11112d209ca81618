"""Spark as a plant: what the gates report becomes one measurement per class, and decisions go back.

Reports arrive in the channel's threads, the loop ticks in its own; one lock guards what they share.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spillway.classes.balance import QueryLoad
from spillway.clock import Clock
from spillway.hosts.spark.driver.channel import Directive, GateReport
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.planner.kept_share import KeptShare
from spillway.model import (
    ADMIT_ALL,
    Action,
    Backlog,
    BatchRecord,
    Decision,
    KeepFraction,
    Measurement,
    Target,
)

# A spared class keeps tuples that come late because others are in its way. After downtime its
# backlog is older than that: then its gate cuts what is stale, once, as any gate does.
HOPELESS_TARGETS = 5.0
RATE_MEMORY_S = 5.0  # offered rates are smoothed over this time


@dataclass(kw_only=True)
class _Period:
    """What a class's gates have reported since the last tick."""

    offered_tuples: int = 0
    admitted_tuples: int = 0
    shed_tuples: int = 0
    completed_tuples: int = 0
    batches: list[BatchRecord] = field(default_factory=list)
    delays: list[tuple[float, int]] = field(default_factory=list)  # (statistic, tuples)


@dataclass(kw_only=True)
class ClassState:
    """A class while it runs: what may be changed from outside, and what was measured last."""

    target: Target
    decides_at_gate: bool  # predictive: only the gate knows its backlog at planning time
    action: Action | None = None
    kept_share: KeptShare = field(default_factory=KeptShare)
    reason: str = ""
    cost_s: float = 0.0
    headroom: float | None = None
    interval_s: float = 0.0  # shortest time between the starts of a gate's batches
    spared: bool = False  # its load is within its share: it sheds nothing
    can_be_spared: bool = True  # not where the flow itself fixes what is kept
    period: _Period = field(default_factory=_Period)
    rates_per_s: dict[str, float] = field(default_factory=dict)  # offered, per gate
    last_tuple_s: float | None = None  # when a report showed a new tuple


class SparkPlant:
    """Implements ports.Plant over the gates' reports."""

    def __init__(
        self, classes: Mapping[str, ClassState], dispatcher: Dispatcher, clock: Clock
    ) -> None:
        self.classes = dict(classes)
        self._dispatcher = dispatcher
        self._clock = clock
        self._last_report: dict[str, GateReport] = {}
        self._last_start_s: dict[str, float] = {}
        self._last_tick_s = clock.now_s()
        self._lock = threading.Lock()

    def answer(self, report: GateReport) -> Directive:
        """Called for every report of a gate, in the gate's own thread."""
        with self._lock:
            state = self.classes[report.class_name]
            self._account(state, report)
        may_start = self._may_start(report, state)
        with self._lock:
            ordered = self._ordered(state, report, may_start)
            return Directive(target=state.target, may_start=may_start, **ordered)

    def _ordered(self, state: ClassState, report: GateReport, starts: bool) -> dict[str, Any]:
        """What the loop wants from a gate; nothing when the gate decides at every batch."""
        backlog = report.backlog
        if not state.decides_at_gate:
            action = state.action
            if starts and backlog.pending_tuples > 0 and isinstance(action, KeepFraction):
                now_s = self._clock.now_s()
                share = state.kept_share.since_last_batch(report.gate, now_s)
                action = KeepFraction(fraction=share)
            return {"action": action, "reason": state.reason}
        hopeless = backlog.oldest_age_s > HOPELESS_TARGETS * state.target.delay_s
        if state.spared and state.can_be_spared and not hopeless:
            return {"action": ADMIT_ALL, "reason": "the class's load is within its share"}
        return {}

    def _may_start(self, report: GateReport, state: ClassState) -> bool:
        if report.joined:
            return True
        busy_s = sum(batch.duration_s for batch in report.batches)
        if report.backlog.pending_tuples == 0:
            self._dispatcher.finished(report.slot, busy_s)
            return True  # an empty batch (a heartbeat) costs no slot
        now_s = self._clock.now_s()
        held_s = self._last_start_s.get(report.slot, 0.0) + state.interval_s - now_s
        if held_s > 0.0:
            self._dispatcher.finished(report.slot, busy_s)
            time.sleep(min(held_s, report.wait_s))
            if held_s > report.wait_s:
                return False
            busy_s = 0.0
        left_s = max(0.0, report.wait_s - max(0.0, held_s))
        granted = self._dispatcher.request(
            report.slot, report.class_name, _output_rate(report), left_s, busy_s
        )
        if granted:
            self._last_start_s[report.slot] = self._clock.now_s()
        return granted

    def loads(self, class_name: str) -> tuple[QueryLoad, ...]:
        """What each gate of a class is offered and what its batches cost."""
        with self._lock:
            return tuple(
                QueryLoad(
                    rate_per_s=self._rate_per_s(report),
                    fixed_s=report.fixed_s,
                    cost_s=report.cost_s,
                    least_cost_s=report.least_cost_s,
                )
                for report in self._last_report.values()
                if report.class_name == class_name and report.fixed_s > 0.0
            )

    def silent_s(self, class_name: str) -> float | None:
        """Time since the class was offered a tuple; None when it never was."""
        last_s = self.classes[class_name].last_tuple_s
        return None if last_s is None else self._clock.now_s() - last_s

    def _rate_per_s(self, report: GateReport) -> float:
        """A gate with pending tuples asks at every poll; silent and idle means none."""
        silent = self._clock.now_s() - report.time_s > RATE_MEMORY_S
        if silent and not self._dispatcher.is_running(report.slot):
            return 0.0
        return self.classes[report.class_name].rates_per_s.get(report.gate, 0.0)

    def drain(self, wait_s: float) -> bool:
        """Let no gate start another batch; True when none is in flight any more."""
        return self._dispatcher.drain(wait_s)

    def leave(self, gate: str) -> None:
        with self._lock:
            last = self._last_report.pop(gate, None)
            slot = gate if last is None else last.slot
            self._last_start_s.pop(slot, None)
            for state in self.classes.values():
                state.kept_share.leave(gate)
        self._dispatcher.leave(slot)

    def observe(self) -> Iterator[Measurement]:
        now_s = self._clock.now_s()
        with self._lock:
            period_s = max(now_s - self._last_tick_s, 1e-3)
            self._last_tick_s = now_s
            measurements = [self._measure(name, now_s, period_s) for name in self.classes]
        yield from measurements

    def actuate(self, class_name: str, decision: Decision) -> None:
        with self._lock:
            state = self.classes[class_name]
            state.action = decision.action
            if isinstance(decision.action, KeepFraction):
                state.kept_share.set(decision.action.fraction, self._clock.now_s())
            state.reason = decision.reason

    def _account(self, state: ClassState, report: GateReport) -> None:
        before = self._last_report.get(report.gate)
        self._last_report[report.gate] = report
        period = state.period
        period.batches += report.batches
        known_tuples = before.offered_tuples if before is not None else 0
        if report.offered_tuples > known_tuples:
            state.last_tuple_s = self._clock.now_s()
        if before is None:
            return  # counts are since the gate's first start: the first report is the zero
        elapsed_s = report.time_s - before.time_s
        if elapsed_s > 0.0:
            rate = (report.offered_tuples - before.offered_tuples) / elapsed_s
            known = state.rates_per_s.get(report.gate, rate)
            share = min(1.0, elapsed_s / RATE_MEMORY_S)
            state.rates_per_s[report.gate] = known + share * (rate - known)
        completed = report.completed_tuples - before.completed_tuples
        period.offered_tuples += report.offered_tuples - before.offered_tuples
        period.admitted_tuples += report.admitted_tuples - before.admitted_tuples
        period.shed_tuples += report.shed_tuples - before.shed_tuples
        period.completed_tuples += completed
        if report.delay_s is not None and completed > 0:
            period.delays.append((report.delay_s, completed))

    def _measure(self, name: str, now_s: float, period_s: float) -> Measurement:
        state = self.classes[name]
        period, state.period = state.period, _Period()
        reports = [r for r in self._last_report.values() if r.class_name == name]
        busy_s = sum(batch.duration_s for batch in period.batches)
        state.cost_s = _joint_cost_s(reports) or state.cost_s
        in_flight = sum(r.admitted_tuples - r.completed_tuples for r in reports)
        backlog = _joint_backlog(reports)
        queued = backlog.pending_tuples + in_flight
        # The log is the queue: what arrived under a share is in it with that share of its load.
        action = None if state.decides_at_gate else state.action
        share = action.fraction if isinstance(action, KeepFraction) else 1.0
        queued_load_s = (share * backlog.pending_tuples + in_flight) * state.cost_s
        admitted = period.admitted_tuples if action is None else share * period.offered_tuples
        return Measurement(
            time_s=now_s,
            period_s=period_s,
            target=state.target,
            offered_tuples=period.offered_tuples,
            admitted_tuples=period.admitted_tuples,
            shed_tuples=period.shed_tuples,
            completed_tuples=period.completed_tuples,
            queued_tuples=queued,
            queued_load_s=queued_load_s,
            offered_load=period.offered_tuples * state.cost_s / period_s,
            admitted_load=admitted * state.cost_s / period_s,
            cost_s=state.cost_s,
            delay_s=_joint_delay_s(state.target, period.delays),
            busy_s=busy_s,
            backlog=backlog,
            batches=tuple(period.batches),
            batch_running=in_flight > 0,
            headroom=state.headroom,
            class_name=name,
        )


class GateDecides:
    """The load manager's stand-in in the loop for classes whose gates decide at every batch.

    It changes nothing; it puts what the gates did into the journal.
    """

    def decide(self, measurement: Measurement) -> Decision:
        seen = measurement.admitted_tuples + measurement.shed_tuples
        fraction = measurement.admitted_tuples / seen if seen else 1.0
        return Decision(
            action=KeepFraction(fraction=fraction), reason="the gates decide at every batch"
        )


def _output_rate(report: GateReport) -> float:
    if not report.batches:
        return 0.0
    last = report.batches[-1]
    return last.kept_tuples / max(last.duration_s, 1e-6)


def _joint_cost_s(reports: list[GateReport]) -> float:
    """c as the gates have learned it. Batch time over tuples would hold the fixed price as well:
    the more is shed, the dearer each tuple would look, and a law would shed ever more."""
    known = [report.cost_s for report in reports if report.cost_s > 0.0]
    return sum(known) / len(known) if known else 0.0


def _joint_backlog(reports: list[GateReport]) -> Backlog:
    pending = sum(r.backlog.pending_tuples for r in reports)
    if pending == 0:
        return Backlog()
    weighted_s = sum(r.backlog.mean_age_s * r.backlog.pending_tuples for r in reports)
    return Backlog(
        pending_tuples=pending,
        mean_age_s=weighted_s / pending,
        statistic_age_s=max(r.backlog.statistic_age_s for r in reports),
        oldest_age_s=max(r.backlog.oldest_age_s for r in reports),
    )


def _joint_delay_s(target: Target, delays: list[tuple[float, int]]) -> float | None:
    """Means are averaged by tuples; of quantiles the largest is taken: the safe side."""
    if not delays:
        return None
    if target.quantile is not None:
        return max(delay_s for delay_s, _ in delays)
    return sum(d * n for d, n in delays) / sum(n for _, n in delays)

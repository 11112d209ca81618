"""Predictive: Spillway's own law."""

from typing import ClassVar

from spillway.load.batch_planner import BatchPlanner
from spillway.load.capabilities import Capabilities, can
from spillway.load.queue_planner import QueuePlanner
from spillway.load.shares import HEADROOM_OPTION, idle, is_idle, share
from spillway.model import Decision, KeepOfBacklog, Measurement
from spillway.options import Option
from spillway.ports import Cadence


class Predictive:
    """Keeps the largest amount whose predicted delay statistic meets the target.

    On a micro-batch plant a batch takes o + c n + s m. The three figures are learned on line; at
    planning time the tuples that wait and their ages are known, so nothing has to be guessed:
    n is solved from age + duration = target (`BatchPlanner`). While a batch runs nothing is
    decided: what waits is planned when the next one starts.

    On an operator network the delay of a tuple that comes in is the queued load over a headroom
    that is observed every period (`QueuePlanner`); the next period's arrivals are the only guess.

    Assumptions: a batch's duration is close to linear in n and m around the working point; a
    network's queued load is known. Both are checked against the measured delay and corrected.
    Stability: see the planners; neither loop has a gain above 1 around its model.
    """

    cadence: ClassVar[Cadence] = "batch"
    adapts: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = can("xxxxxxx")
    parameters: ClassVar[tuple[Option, ...]] = (HEADROOM_OPTION,)

    def __init__(self, *, headroom: float | None = None) -> None:
        self._batches = BatchPlanner()
        self._queues = QueuePlanner(headroom=headroom)
        self._in_batches = False

    def decide(self, measurement: Measurement) -> Decision:
        self._in_batches |= bool(measurement.batches) or measurement.batch_running
        if self._in_batches or measurement.backlog.pending_tuples > 0:
            return self._plan_batch(measurement)
        return self._plan_period(measurement)

    def _plan_batch(self, measurement: Measurement) -> Decision:
        target = measurement.target
        prices = measurement.prices
        shed = measurement.shed_tuples > 0
        self._batches.observe(
            measurement.batches, measurement.delay_s if shed else None, target, prices
        )
        if measurement.batch_running:
            everything = KeepOfBacklog(tuples=measurement.backlog.pending_tuples)
            return Decision(action=everything, reason="a batch runs: decides when the next starts")
        tuples, reason = self._batches.plan(measurement.backlog, target, prices)
        return Decision(
            action=KeepOfBacklog(tuples=tuples), reason=reason, aim_s=self._batches.aim_s(target)
        )

    def _plan_period(self, measurement: Measurement) -> Decision:
        if is_idle(measurement):
            return idle(self._queues.headroom)
        admissible_s, expected_s, reason = self._queues.admissible_load(measurement)
        return Decision(
            action=share(admissible_s, expected_s), reason=reason, headroom=self._queues.headroom
        )

"""The gate's own control: measures, learns and decides inside the planner process.

It needs no control loop. With Spark's default trigger a batch has ended when the next offset is
asked for, and the planner knows how many tuples it admitted and when they arrived.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spillway.gate.offsets import Costs, Offset
from spillway.hosts.spark.planner.kept_share import KeptShare
from spillway.load import laws
from spillway.load.batch_model import BatchModel
from spillway.model import Backlog, BatchRecord, Decision, KeepFraction, Measurement, Target
from spillway.ports import LoadManager

_BATCHES_KEPT = 100  # while somebody else decides and nobody asks


@dataclass(kw_only=True)
class _Period:
    """What happened since the last decision; the counts are the running ones at its start."""

    since_s: float
    offered: int
    admitted: int
    shed: int
    completed: int = 0
    delay_sum_s: float = 0.0
    batches: list[BatchRecord] = field(default_factory=list)


def delay_of(offset: Offset, ended_s: float, target: Target) -> float | None:
    """The target's statistic over the tuples that a batch kept, once it has ended."""
    arrived = offset.arrived
    if arrived is None:
        return None
    at_us = {"mean": arrived.mean_us, "p95": arrived.p05_us, "p99": arrived.p01_us}
    return max(0.0, ended_s - at_us[target.statistic] / 1e6)


class OwnControl:
    """One load manager, fed from the gate's own counts.

    Laws of a control period decide once a period has passed, at the next batch; until then their
    last share stands. Costs are learned on the side, whatever the law.
    """

    def __init__(self, manager: str, period_s: float, parameters: Mapping[str, float]) -> None:
        self._law: LoadManager = laws.make(manager, **parameters)
        self._every_batch = manager in laws.EVERY_BATCH
        self._period_s = period_s
        self._model = BatchModel()
        self._period: _Period | None = None
        self._decision: Decision | None = None
        self._kept_share = KeptShare()

    @property
    def costs(self) -> Costs | None:
        """What this run has learned so far."""
        model = self._model
        if not model.known:
            return None
        return Costs(fixed_s=model.overhead_s, kept_s=model.cost_s, scanned_s=model.scan_s)

    @property
    def cheap_tuples(self) -> int:
        return self._model.cheap_tuples()

    @property
    def least_cost_s(self) -> float:
        return self._model.least_cost_s

    def batch_ended(self, record: BatchRecord, delay_s: float | None) -> None:
        self._model.learn(record)
        if self._period is None:
            return
        self._period.batches.append(record)
        del self._period.batches[:-_BATCHES_KEPT]
        if delay_s is not None:
            self._period.completed += record.kept_tuples
            self._period.delay_sum_s += delay_s * record.kept_tuples

    def decide(self, now_s: float, backlog: Backlog, previous: Offset, target: Target) -> Decision:
        totals = previous.totals
        offered = totals.admitted + totals.shed + backlog.pending_tuples
        if self._period is None:
            self._period = _Period(
                since_s=now_s, offered=offered, admitted=totals.admitted, shed=totals.shed
            )
        elapsed_s = now_s - self._period.since_s
        due = self._every_batch or not 0.0 <= elapsed_s < self._period_s
        if self._decision is None or due:
            measured = self._measure(now_s, backlog, previous, offered, target)
            self._decision = self._law.decide(measured)
            self._period = _Period(
                since_s=now_s, offered=offered, admitted=totals.admitted, shed=totals.shed
            )
        return self._decision if self._every_batch else self._as_it_stood(self._decision, now_s)

    def _as_it_stood(self, decision: Decision, now_s: float) -> Decision:
        """With the share that stood while the waiting tuples arrived."""
        if not isinstance(decision.action, KeepFraction):
            return decision
        share = self._kept_share.since_last_batch("", now_s)
        self._kept_share.set(decision.action.fraction, now_s)
        return replace(decision, action=KeepFraction(fraction=share))

    @property
    def _share(self) -> float:
        """In force now."""
        action = self._decision.action if self._decision else None
        return action.fraction if isinstance(action, KeepFraction) else 1.0

    def _measure(
        self, now_s: float, backlog: Backlog, previous: Offset, offered: int, target: Target
    ) -> Measurement:
        period = self._period
        assert period is not None
        length_s = max(1e-3, now_s - period.since_s)
        kept_s, scanned_s = (self.costs.kept_s, self.costs.scanned_s) if self.costs else (0.0, 0.0)
        cost_s = kept_s + scanned_s
        new = offered - period.offered
        # The log is the queue, and what has arrived under a share is in it with that share of its
        # load: a batch that is bounded admits less, but not because less was let in.
        load_s = (1.0 if self._every_batch else self._share) * kept_s + scanned_s
        return Measurement(
            time_s=now_s,
            period_s=length_s,
            target=target,
            offered_tuples=new,
            admitted_tuples=previous.totals.admitted - period.admitted,
            shed_tuples=previous.totals.shed - period.shed,
            completed_tuples=period.completed,
            queued_tuples=backlog.pending_tuples,
            queued_load_s=backlog.pending_tuples * load_s,
            offered_load=new * cost_s / length_s,
            admitted_load=new * load_s / length_s,
            cost_s=cost_s,
            delay_s=period.delay_sum_s / period.completed if period.completed else None,
            busy_s=sum(batch.duration_s for batch in period.batches),
            backlog=backlog,
            batches=tuple(period.batches),
        )

"""What a run of load steps on executors is worth: decisions, time to settle, executor seconds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spillway.hosts.spark.driver.progress import DeliveredBatch

LOOK_S = 5.0  # delays and shed tuples are looked at in windows of so long
_GOOD_WINDOWS = 3  # in a row: the target holds again
_SHED_AT_MOST = 0.01  # of what is offered, where the target is said to hold


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One rate, from one moment of the run to another."""

    rate_per_s: float
    from_s: float
    to_s: float

    def least_executors(self, cost_s: float) -> int:
        """Of one core: what the tuples alone take, as if a batch had no price of its own."""
        return math.ceil(self.rate_per_s * cost_s)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What a run of several phases showed. `counts`: (moment, executors from then on)."""

    phases: Sequence[Phase]
    batches: Sequence[DeliveredBatch]
    counts: Sequence[tuple[float, int]]
    decided_s: Sequence[float]
    target_s: float
    cost_s: float

    def decisions(self) -> list[int]:
        """After each step: the first phase is where it begins."""
        return [sum(p.from_s <= at_s < p.to_s for at_s in self.decided_s) for p in self.phases[1:]]

    def settle_s(self) -> float | None:
        """From the first step until the target holds without shedding; None: it does not."""
        phase = self.phases[1]
        good, at_s = 0, phase.from_s
        while at_s + LOOK_S <= phase.to_s:
            good = good + 1 if self.is_good(at_s, at_s + LOOK_S) else 0
            at_s += LOOK_S
            if good == _GOOD_WINDOWS:
                return at_s - _GOOD_WINDOWS * LOOK_S - phase.from_s
        return None

    def holds(self) -> bool:
        """Once it has settled, to the end of the run."""
        settle_s = self.settle_s()
        if settle_s is None:
            return False
        first = self.phases[1]
        return self.is_good(first.from_s + settle_s, first.to_s) and all(
            self.is_good(phase.from_s, phase.to_s) for phase in self.phases[2:]
        )

    def is_good(self, from_s: float, to_s: float) -> bool:
        """Of a long batch the windows inside it say nothing: they are as good as the batch."""
        own = [b for b in self.batches if b.ended_s - b.duration_s < to_s and b.ended_s >= from_s]
        offered = sum(batch.offered_tuples for batch in own)
        kept = sum(batch.kept_tuples for batch in own)
        if kept == 0:
            return False
        late_s = sum(batch.mean_delay_s * batch.kept_tuples for batch in own)
        return late_s / kept <= self.target_s and offered - kept <= _SHED_AT_MOST * offered

    def shed_tuples(self) -> int:
        from_s, to_s = self.phases[0].from_s, self.phases[-1].to_s
        own = [batch for batch in self.batches if from_s <= batch.ended_s < to_s]
        return sum(batch.offered_tuples - batch.kept_tuples for batch in own)

    def executor_s(self) -> float:
        from_s, to_s = self.phases[0].from_s, self.phases[-1].to_s
        ends = [*self.counts, (to_s, 0)]
        return sum(
            count * max(0.0, min(until_s, to_s) - max(at_s, from_s))
            for (at_s, count), (until_s, _) in pairwise(ends)
        )

    def least_executor_s(self) -> float:
        return sum(p.least_executors(self.cost_s) * (p.to_s - p.from_s) for p in self.phases)

    def figures(self) -> dict[str, Any]:
        """`decisions_per_step`: of the step that took most."""
        settle_s = self.settle_s()
        return {
            "decisions_per_step": max(self.decisions()),
            "settle_s": None if settle_s is None else round(settle_s, 1),
            "holds": self.holds(),
            "shed_tuples": self.shed_tuples(),
            "executor_s": round(self.executor_s(), 1),
            "least_executor_s": round(self.least_executor_s(), 1),
        }

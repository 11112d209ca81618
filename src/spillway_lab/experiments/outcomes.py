"""One simulated run as plain numbers: the four figures of the ctrl paper, and curves over time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway_lab.engine.run import Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Totals of one class over a run, and one value a control period of what is worth drawing."""

    accumulated_violation_s: float
    delayed_tuples: int
    max_overshoot_s: float
    loss_ratio: float
    mean_delay_s: float
    mean_violation_s: float  # over all completed tuples (the thesis's average)
    completed_tuples: int
    period_s: float
    time_s: Floats
    delay_s: Floats  # mean of the tuples that completed in the period; NaN when none did
    delay_by_arrival_s: Floats  # mean of the tuples that arrived in the period
    keep_fraction: Floats
    headroom: Floats
    offered_per_s: Floats
    queued_tuples: Floats
    cost_s: Floats

    def summary(self) -> dict[str, float]:
        return {
            "accumulated_violation_s": round(self.accumulated_violation_s, 3),
            "delayed_tuples": self.delayed_tuples,
            "max_overshoot_s": round(self.max_overshoot_s, 4),
            "loss_ratio": round(self.loss_ratio, 5),
            "mean_delay_s": round(self.mean_delay_s, 4),
            "mean_violation_s": round(self.mean_violation_s, 5),
        }

    def mean_delay_between(self, start_s: float, end_s: float) -> float:
        """Mean of the period means in [start, end)."""
        inside = self.delay_s[(self.time_s > start_s) & (self.time_s <= end_s)]
        inside = inside[np.isfinite(inside)]
        return float(inside.mean()) if inside.size else 0.0


def outcome_of(run: Run) -> Outcome:
    return Outcome(
        accumulated_violation_s=run.accumulated_violation_s,
        delayed_tuples=run.delayed_tuples,
        max_overshoot_s=run.max_overshoot_s,
        loss_ratio=run.loss_ratio,
        mean_delay_s=run.mean_delay_s,
        mean_violation_s=run.mean_violation_s,
        completed_tuples=run.delays.tuples,
        period_s=run.period_s,
        time_s=run.time_s,
        delay_s=run.delay_s,
        delay_by_arrival_s=run.delay_by_arrival_s,
        keep_fraction=run.keep_fraction,
        headroom=run.headroom,
        offered_per_s=run.offered / run.period_s,
        queued_tuples=run.queued.astype(np.float64),
        cost_s=run.cost_s,
    )


def numbers(values: Iterable[float], digits: int = 4) -> list[Any]:
    """For JSON: rounded, with None where there is no number."""
    return [round(float(v), digits) if np.isfinite(v) else None for v in values]


def ratio(a: float, b: float) -> float:
    """a / b; a large number instead of infinity when b is zero."""
    return a / b if b > 0.0 else (1.0 if a <= 0.0 else 1e9)

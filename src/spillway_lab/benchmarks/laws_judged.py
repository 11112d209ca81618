"""What a run under one law is judged by: delay over target, and kept over the best that could be.

A shared machine is up to twice as fast in one minute as in another, within one JVM and without any
sign of it. So the oracle works at the speed of the run itself: its prices are those of the
calibration times `pace`, what the judged batches took over what these prices say. A law that idles,
sheds too much or cuts its batches badly keeps less than that oracle all the same: none of it makes
a batch slower than its size says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spillway.hosts.spark.driver.progress import DeliveredBatch, summarise
from spillway.load import oracle
from spillway.model import Prices, Target

HOLDS = (0.8, 1.1)  # of a mean target
LEAST_EFFICIENCY = 0.8
WINDOW_S = 10.0  # over which a delay counts as settled


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a query was offered, and what its batches were calibrated to take."""

    target: Target
    rate_per_s: float
    prices: Prices

    def best_per_s(self, pace: float) -> float:
        """What the best uniform shedder keeps on a machine that is so many times slower."""
        at = self.prices.slower(pace)
        return oracle.uniform_rate_per_s(
            self.rate_per_s, self.target, at.fixed_s, at.kept_s, at.scanned_s
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One query under one law."""

    delay_s: float
    target_s: float
    kept_ratio: float
    efficiency: float  # at the speed of the run
    efficiency_as_calibrated: float
    pace: float  # how many times slower than calibrated
    settled_s: float | None  # None: never

    @property
    def off(self) -> float:
        return abs(self.delay_s / self.target_s - 1.0)


def outcome(
    batches: Sequence[DeliveredBatch], began_s: float, settle_s: float, load: Load
) -> Outcome:
    judged = [b for b in batches if b.ended_s > began_s + settle_s]
    seen = summarise(judged, load.target.delay_s)
    if seen is None:
        return Outcome(
            delay_s=float("inf"),
            target_s=load.target.delay_s,
            kept_ratio=0.0,
            efficiency=0.0,
            efficiency_as_calibrated=0.0,
            pace=float("nan"),
            settled_s=None,
        )
    before = [b.ended_s for b in batches if b.ended_s <= began_s + settle_s]
    spent_s = judged[-1].ended_s - (before[-1] if before else began_s)
    pace = pace_of(judged, load.prices)
    return Outcome(
        delay_s=seen.mean_s,
        target_s=load.target.delay_s,
        kept_ratio=seen.kept_tuples / max(1, seen.offered_tuples),
        efficiency=seen.kept_tuples / spent_s / load.best_per_s(pace),
        efficiency_as_calibrated=seen.kept_tuples / spent_s / load.best_per_s(1.0),
        pace=pace,
        settled_s=settled_s(batches, began_s, load.target),
    )


def pace_of(batches: Sequence[DeliveredBatch], prices: Prices) -> float:
    """The median: a batch that met a pause says nothing about the others. From its plan on: what
    it waited for before is no speed."""
    took = [
        (b.ended_s - b.planned_s) / prices.duration_s(b.kept_tuples, b.offered_tuples)
        for b in batches
        if b.kept_tuples > 0
    ]
    return float(np.median(took))


def settled_s(batches: Sequence[DeliveredBatch], began_s: float, target: Target) -> float | None:
    """From when on every window of ten seconds has its mean delay where the target wants it."""
    if not batches:
        return None
    starts = np.arange(began_s, batches[-1].ended_s - WINDOW_S, 1.0)
    since: float | None = None
    for start_s in starts:
        inside = [b for b in batches if start_s <= b.ended_s < start_s + WINDOW_S]
        seen = summarise(inside, target.delay_s)
        held = seen is not None and HOLDS[0] <= seen.mean_s / target.delay_s <= HOLDS[1]
        since = (start_s - began_s if since is None else since) if held else None
    return since


def judged(by_query: Mapping[str, Outcome]) -> dict[str, Any]:
    """The query that is furthest off its target, and the efficiency of all."""
    worst = max(by_query.values(), key=lambda found: found.off)
    efficiency = float(np.mean([found.efficiency for found in by_query.values()]))
    ratio = worst.delay_s / worst.target_s
    holds = HOLDS[0] <= ratio <= HOLDS[1] and efficiency >= LEAST_EFFICIENCY
    return {**asdict(worst), "efficiency": efficiency, "holds": holds}

"""Delays as they were delivered: from Spark's progress events and the arrivals in the offsets.

A tuple's delay runs from its arrival until the micro-batch that consumed it has committed. Spark
says when a batch ended, the gate's offset says when the batch's kept tuples arrived; neither side
can make the figure look better than it is.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.gate.offsets import Offset, decode, is_sentinel
from spillway.hosts.spark.driver.monitor import BatchProgress

AGE_SHARES = np.array([0.0, 0.01, 0.05, 1.0])  # of a batch's kept tuples, oldest first


@dataclass(frozen=True, kw_only=True)
class DeliveredBatch:
    """One batch of one gate. Ages run linearly between the arrivals that the offset names."""

    gate: str
    seq: int
    ended_s: float
    duration_s: float
    offered_tuples: int
    kept_tuples: int
    mean_delay_s: float
    quantile_delays_s: npt.NDArray[np.float64]  # at AGE_SHARES: the oldest tuple first

    def above(self, bound_s: float) -> tuple[float, float]:
        """Tuples above a delay, and the sum of what they exceed it by."""
        shares = np.linspace(0.0005, 0.9995, 1000)
        excess_s = np.interp(shares, AGE_SHARES, self.quantile_delays_s) - bound_s
        late = excess_s > 0.0
        return float(late.mean() * self.kept_tuples), float(
            excess_s[late].sum() / len(shares) * self.kept_tuples
        )


def delivered(progress: BatchProgress) -> list[DeliveredBatch]:
    """What a progress event says of our gates; sources that are not ours are passed over."""
    found = []
    for source in progress.sources:
        offset = _offset(source.get("endOffset"))
        before = _offset(source.get("startOffset"))
        if offset is None or offset.arrived is None:
            continue
        if before is not None and before.seq == offset.seq:
            continue  # this gate had no part in the batch
        found.append(_batch(offset, progress))
    return found


def end_offsets(progress: BatchProgress) -> list[Offset]:
    """Where our gates stand after a batch."""
    found = (_offset(source.get("endOffset")) for source in progress.sources)
    return [offset for offset in found if offset is not None]


def _batch(offset: Offset, progress: BatchProgress) -> DeliveredBatch:
    arrived = offset.arrived
    assert arrived is not None
    mean_s = arrived.mean_us / 1e6
    last_s = min(2.0 * mean_s - arrived.first_us / 1e6, offset.planned_us / 1e6)
    arrivals = np.array(
        [arrived.first_us / 1e6, arrived.p01_us / 1e6, arrived.p05_us / 1e6, last_s]
    )
    return DeliveredBatch(
        gate=offset.gate,
        seq=offset.seq,
        ended_s=progress.ended_s,
        duration_s=progress.duration_s,
        offered_tuples=offset.offered_tuples,
        kept_tuples=offset.kept_tuples(),
        mean_delay_s=progress.ended_s - mean_s,
        quantile_delays_s=progress.ended_s - arrivals,
    )


def _offset(value: Any) -> Offset | None:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, dict) or "planned_us" not in value or is_sentinel(value):
        return None
    return decode(value)


@dataclass(frozen=True, kw_only=True)
class DelaySummary:
    """Delays over many batches, and how far they were above a bound."""

    batches: int
    offered_tuples: int
    kept_tuples: int
    mean_s: float
    p95_s: float
    p99_s: float
    delayed_tuples: float
    accumulated_violation_s: float
    mean_batch_s: float


def summarise(batches: Iterable[DeliveredBatch], bound_s: float) -> DelaySummary | None:
    """None when nothing was delivered."""
    kept = [batch for batch in batches if batch.kept_tuples > 0]
    if not kept:
        return None
    weights = np.array([batch.kept_tuples for batch in kept], dtype=float)
    shares = np.linspace(0.0005, 0.9995, 1000)
    delays_s = np.array([np.interp(shares, AGE_SHARES, batch.quantile_delays_s) for batch in kept])
    tuples = np.repeat(weights / len(shares), len(shares))
    p95_s, p99_s = _quantiles(delays_s.ravel(), tuples, (0.95, 0.99))
    late = [batch.above(bound_s) for batch in kept]
    return DelaySummary(
        batches=len(kept),
        offered_tuples=sum(batch.offered_tuples for batch in kept),
        kept_tuples=int(weights.sum()),
        mean_s=float(np.average([batch.mean_delay_s for batch in kept], weights=weights)),
        p95_s=p95_s,
        p99_s=p99_s,
        delayed_tuples=sum(count for count, _ in late),
        accumulated_violation_s=sum(excess_s for _, excess_s in late),
        mean_batch_s=float(np.mean([batch.duration_s for batch in kept])),
    )


def _quantiles(
    values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    shares: tuple[float, ...],
) -> tuple[float, ...]:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    places = np.searchsorted(below, np.array(shares) * below[-1])
    return tuple(float(values[order][min(place, len(order) - 1)]) for place in places)

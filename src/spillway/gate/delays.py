"""How long tuples took: one summary a batch, and the statistic over many of them.

A tuple's delay runs from its arrival until the micro-batch that consumed it has committed. The
offset says when the batch's kept tuples arrived; whoever saw the batch end says when that was.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spillway.gate.offsets import Arrived
from spillway.model import DELAY_SHARES, Delays, Target

Floats = npt.NDArray[np.float64]


def delays_of(arrived: Arrived, tuples: int, planned_us: int, ended_s: float) -> Delays:
    """Of one gate's part of a batch. A clock that jumped back makes no delay negative, and a log
    whose clock is ahead does not turn their order."""
    mean_s, first_s, p05_s = (
        us / 1e6 for us in (arrived.mean_us, arrived.first_us, arrived.p05_us)
    )
    last_s = max(p05_s, min(2.0 * mean_s - first_s, planned_us / 1e6))
    arrivals_s = (first_s, arrived.p01_us / 1e6, p05_s, last_s)
    return Delays(
        tuples=tuples,
        mean_s=max(0.0, ended_s - mean_s),
        quantiles_s=tuple(max(0.0, ended_s - at_s) for at_s in arrivals_s),
    )


def delay_s(delays: Sequence[Delays], target: Target) -> float | None:
    """The target's statistic over all tuples of these batches; None when there are none."""
    known = [d for d in delays if d.tuples > 0]
    if not known:
        return None
    if target.quantile is None:
        return sum(d.mean_s * d.tuples for d in known) / sum(d.tuples for d in known)
    return quantile_s(known, target.quantile)


def quantile_s(delays: Sequence[Delays], quantile: float) -> float:
    """Exact for the summaries: in between the delays that any of them names, the tuples above x,
    summed over all of them, are linear; at such a delay they fall by those that took just that."""
    places_s = np.unique([at_s for d in delays for at_s in d.quantiles_s])
    above = sum(d.tuples * _shares_above(d, places_s) for d in delays)
    wanted = (1.0 - quantile) * sum(d.tuples for d in delays)
    return float(np.interp(-wanted, -np.asarray(above), np.repeat(places_s, 2)))


def _shares_above(delays: Delays, places_s: Floats) -> Floats:
    """Of one batch's tuples: for each place those at or above it, and those above it."""
    longest_first_s, shares = np.array(delays.quantiles_s), np.array(DELAY_SHARES)
    # Of equal delays np.interp takes the last: downwards the largest share, upwards the smallest.
    reach = np.interp(-places_s, -longest_first_s, shares, left=0.0, right=1.0)
    above = np.interp(places_s, longest_first_s[::-1], shares[::-1], left=1.0, right=0.0)
    return np.column_stack((reach, above)).ravel()


def excess(delays: Delays, bound_s: float) -> tuple[float, float]:
    """Tuples above a delay, and the sum of what they exceed it by."""
    shares = np.linspace(0.0005, 0.9995, 1000)
    over_s = np.interp(shares, DELAY_SHARES, delays.quantiles_s) - bound_s
    late = over_s > 0.0
    return (
        float(late.mean() * delays.tuples),
        float(over_s[late].sum() / len(shares) * delays.tuples),
    )

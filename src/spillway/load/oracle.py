"""The best that any law can keep under constant load: what efficiency is measured against.

Rate r, target y, a batch of length D takes o + c n + s m. A batch that keeps the share f of what
arrived over the previous one needs D = o + c f r D + s r D, so it keeps
n / D = (1 - o / D - s r) / c tuples per second: longer batches keep more, the target bounds D.
"""

import math

from spillway.errors import require
from spillway.model import Target


def uniform_length_s(target: Target) -> float:
    """D = y / (1 + p): kept tuples are pD old at planning (p = 1/2 for the mean) and wait D."""
    return target.delay_s / (1.0 + target.age_share)


def uniform_rate_per_s(
    rate_per_s: float, target: Target, overhead_s: float, cost_s: float, scan_s: float = 0.0
) -> float:
    """Best kept rate when every waiting tuple is equally likely to be kept."""
    _check(rate_per_s, overhead_s, cost_s)
    return _kept(rate_per_s, uniform_length_s(target), overhead_s, cost_s, scan_s)


def fresh_rate_per_s(rate_per_s: float, target: Target, overhead_s: float, cost_s: float) -> float:
    """Best kept rate when the youngest tuples are kept: they are pfD old, so D (1 + pf) = y.

    The others are not even scanned. With f = (1 - o / D) / (r c) that is
    D (1 + p / (rc)) = y + p o / (rc), linear in D.
    """
    _check(rate_per_s, overhead_s, cost_s)
    per_load = target.age_share / (rate_per_s * cost_s) if rate_per_s > 0.0 else math.inf
    if math.isinf(per_load):
        return 0.0
    length_s = (target.delay_s + per_load * overhead_s) / (1.0 + per_load)
    length_s = max(length_s, uniform_length_s(target))  # f cannot exceed 1
    return _kept(rate_per_s, length_s, overhead_s, cost_s)


def bound_rate_per_s(
    rate_per_s: float, target: Target, overhead_s: float, cost_s: float, scan_s: float = 0.0
) -> float:
    """(1 - o / y - s r) / c: no shedder that scans everything keeps more, whatever it drops."""
    _check(rate_per_s, overhead_s, cost_s)
    return _kept(rate_per_s, target.delay_s, overhead_s, cost_s, scan_s)


def _kept(
    rate_per_s: float, length_s: float, overhead_s: float, cost_s: float, scan_s: float = 0.0
) -> float:
    free = 1.0 - overhead_s / length_s - (scan_s * rate_per_s if scan_s > 0.0 else 0.0)
    return min(rate_per_s, max(0.0, free) / cost_s)


def _check(rate_per_s: float, overhead_s: float, cost_s: float) -> None:
    require(rate_per_s >= 0.0, "rate_per_s", rate_per_s, "0 or more")
    require(overhead_s >= 0.0, "overhead_s", overhead_s, "0 or more")
    require(cost_s > 0.0, "cost_s", cost_s, "above 0")

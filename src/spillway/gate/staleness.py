"""When a backlog is too old to sample evenly, and how much of its newest still meets a target."""

from spillway.gate.arrivals import Arrivals
from spillway.model import Prices, Target


def is_stale(arrivals: Arrivals, now_s: float, target: Target) -> bool:
    """Whether the backlog spans more than twice the batch length of the uniform optimum.

    With a mean target y that is 2y/3, with a quantile p it is y/(1 + p). Behind that, sampling
    evenly would spend most of the target on tuples that have already missed it.
    """
    length_s = target.delay_s / (1.0 + target.age_share)
    return arrivals.tuples > 0 and now_s - float(arrivals.times_s[0]) > 2.0 * length_s


def newest_within_target(arrivals: Arrivals, now_s: float, prices: Prices, target: Target) -> int:
    """The largest n whose newest n tuples, all kept, still meet the target.

    age(n) + fixed + n * (kept + scanned) <= y; the left side grows with n, so bisection finds it.
    """
    low, high = 0, arrivals.tuples
    while low < high:
        n = (low + high + 1) // 2
        if _age_of_newest_s(arrivals, n, now_s, target) + prices.duration_s(n, n) <= target.delay_s:
            low = n
        else:
            high = n - 1
    return low


def _age_of_newest_s(arrivals: Arrivals, tuples: int, now_s: float, target: Target) -> float:
    quantile = target.quantile
    if quantile is None:
        return now_s - arrivals.mean_arrival_of_newest_s(tuples)
    return now_s - arrivals.arrival_of_count_s(arrivals.tuples - quantile * tuples)

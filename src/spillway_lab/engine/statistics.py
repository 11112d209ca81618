"""Delays of everything that completed, in constant memory per control period."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spillway.model import Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)

_BINS_PER_DECADE = 500  # a bin is 0.46 % wide: that is the error of a quantile
_SHORTEST_S, _DECADES = 1e-6, 12
_EDGES_S = _SHORTEST_S * 10.0 ** (np.arange(_BINS_PER_DECADE * _DECADES) / _BINS_PER_DECADE)


def statistic_of(delays_s: Floats, target: Target) -> float | None:
    """The target's statistic (mean or quantile) of some delays; None when there are none."""
    if not delays_s.size:
        return None
    quantile = target.quantile
    return float(delays_s.mean() if quantile is None else np.quantile(delays_s, quantile))


class DelayRecord:
    """Sums over completed tuples: by arrival period, by completion period, and as a histogram.

    A violation is what a tuple's delay exceeds the target in force at its completion by
    (ctrl paper section 3: accumulated violation, delayed tuples, maximal overshoot).
    """

    def __init__(self, period_s: float = 1.0) -> None:
        self.period_s = period_s
        self.tuples = 0
        self.total_s = 0.0
        self.accumulated_violation_s = 0.0
        self.delayed_tuples = 0
        self.max_delay_s = 0.0
        self.max_overshoot_s = 0.0
        self.histogram = np.zeros(_EDGES_S.size + 1, dtype=np.int64)
        self.by_arrival = PeriodSums()
        self.by_completion = PeriodSums()

    def add(self, arrived_s: Floats, done_s: Floats, target_s: float) -> None:
        if not arrived_s.size:
            return
        delays = np.maximum(done_s - arrived_s, 0.0)
        longest, over = float(delays.max()), delays[delays > target_s] - target_s
        self.tuples += delays.size
        self.total_s += float(delays.sum())
        self.max_delay_s = max(self.max_delay_s, longest)
        self.accumulated_violation_s += float(over.sum())
        self.delayed_tuples += over.size
        self.max_overshoot_s = max(self.max_overshoot_s, longest - target_s)
        self.histogram += np.bincount(_bins(delays), minlength=self.histogram.size)
        self.by_arrival.add(arrived_s, delays, self.period_s)
        self.by_completion.add(done_s, delays, self.period_s)

    @property
    def mean_s(self) -> float:
        return self.total_s / self.tuples if self.tuples else 0.0

    def quantile_s(self, quantile: float) -> float:
        """The smallest bin edge that at least this share of the delays stays below."""
        if not self.tuples:
            return 0.0
        rank = np.searchsorted(np.cumsum(self.histogram), quantile * self.tuples)
        return float(min(_EDGES_S[min(int(rank), _EDGES_S.size - 1)], self.max_delay_s))

    def cdf(self) -> tuple[Floats, Floats]:
        """Delays (s) and the share of tuples at or below each."""
        used = np.flatnonzero(self.histogram)
        shares = np.cumsum(self.histogram) / max(1, self.tuples)
        edges: Floats = _EDGES_S[np.minimum(used, _EDGES_S.size - 1)]
        return edges, shares[used]


class PeriodSums:
    """Count and sum of delays per period."""

    def __init__(self) -> None:
        self._counts = np.zeros(64, dtype=np.int64)
        self._sums = np.zeros(64)

    def add(self, times_s: Floats, delays_s: Floats, period_s: float) -> None:
        index = (times_s / period_s).astype(np.int64)
        first = int(index.min())
        counts = np.bincount(index - first)
        needed = first + counts.size
        if needed > self._counts.size:
            grow = max(needed, 2 * self._counts.size) - self._counts.size
            self._counts = np.pad(self._counts, (0, grow))
            self._sums = np.pad(self._sums, (0, grow))
        self._counts[first:needed] += counts
        self._sums[first:needed] += np.bincount(index - first, weights=delays_s)

    def counts(self, periods: int) -> Ints:
        return _fit(self._counts, periods)

    def means(self, periods: int) -> Floats:
        """Mean delay of every period; NaN where nothing was."""
        counts, sums = _fit(self._counts, periods), _fit(self._sums, periods)
        with np.errstate(invalid="ignore"):
            means: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means


def _fit(values: npt.NDArray[_Number], size: int) -> npt.NDArray[_Number]:
    return np.pad(values, (0, max(0, size - values.size)))[:size]


def _bins(delays_s: Floats) -> Ints:
    scaled = np.log10(np.maximum(delays_s, _SHORTEST_S) / _SHORTEST_S) * _BINS_PER_DECADE
    bins: Ints = np.minimum(np.ceil(scaled), _EDGES_S.size).astype(np.int64)
    return bins


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Where every tuple of a class is. offered = admitted + shed + pending, always.

    admitted = in flight + completed: a filtered tuple is completed when it is discarded.
    """

    offered_tuples: int = 0
    admitted_tuples: int = 0
    shed_tuples: int = 0
    pending_tuples: int = 0
    in_flight_tuples: int = 0
    completed_tuples: int = 0

    @property
    def balanced(self) -> bool:
        return (
            self.offered_tuples == self.admitted_tuples + self.shed_tuples + self.pending_tuples
            and self.admitted_tuples == self.in_flight_tuples + self.completed_tuples
        )

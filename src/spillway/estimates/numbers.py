"""Estimates from a sample with known inclusion probabilities, and how sure they are.

Every kept tuple has a weight w = 1 / its inclusion probability. For a group of kept tuples, with
sums over them, W = sum w and c = sum w (w - 1) / W (with one weight for all, c = w - 1):

- count: W is unbiased (Horvitz-Thompson). Of the S positions that the group is spread over, the
  gate keeps a fixed number in every block, so the variance at a true count N is c N (1 - N/S): the
  last factor is the finite population's. For a group that is the whole stream only the two blocks
  are unsure in which the group begins and ends: cut anywhere, they have a variance of c BLOCK / 3,
  as if S had BLOCK / 3 positions more; CUT_POSITIONS is half a block, as shares may change. Bounds
  are the N with (W - N)^2 = z^2 c N (1 - N/S), Wilson's way: sound for small counts too. Tuples of
  weight 1 are certain: they are added afterwards, and W, S and c are those of the thinned rest.
- avg: m = sum w x / W (Hajek), variance sum v (x - m)^2 / W^2 * d / (d - 1), with v = w (w - 1),
  the number of tuples that it comes from d = (sum v)^2 / sum v^2, and Student's t. Heavy tails make
  the variance itself unsure: with excess kurtosis e of the values it has (d - 1) / (1 + e/2)
  degrees of freedom (Satterthwaite). With the effective number of tuples k = W^2 / sum w^2 both
  bounds move towards the longer tail by the Edgeworth term of a studentised mean: with skewness g
  of the values and the fraction f that was seen, a = g sqrt(1 - f) / sqrt k and
  b = g (1 - 2 f) / (sqrt k sqrt(1 - f)), by a/2 - (b - 3 a)(z^2 - 1)/6 standard errors.
- sum: W m, bounds from those of count and avg, whose errors are uncorrelated (MOVER: each side's
  distances are added in quadrature, so that the count's asymmetry is kept).
- distinct keys, where keys stay or go as a whole: the count of the keys with the smallest weight
  that each was seen with, S infinite (estimates_keys says why).

With fewer than LEAST_KEPT kept tuples, or k < LEAST_EFFECTIVE, there are no bounds, unless nothing
was shed.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.gate.sampling import BLOCK

CUT_POSITIONS = BLOCK / 2
LEAST_KEPT = 20
LEAST_EFFECTIVE = 10  # a few heavy weights among many light ones say as little as few tuples
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Of each group's kept tuples."""

    kept: Floats
    w: Floats
    ww: Floats  # w^2
    wx: Floats
    vx: Floats  # w (w - 1) x
    vxx: Floats  # w (w - 1) x^2
    skewness: Floats  # of the kept values
    kurtosis: Floats  # of the kept values, 0 for a normal distribution
    span: Floats  # last place - first place + 1
    sure: Floats  # kept tuples of weight 1
    vv: Floats  # w^2 (w - 1)^2


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """NaN where there are too few tuples for bounds, or none for an estimate."""

    estimate: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class Estimates:
    count: Bounded
    sum: Bounded
    avg: Bounded


def sums(group: npt.NDArray[np.int64], groups: int, w: Floats, x: Floats, place: Any) -> Sums:
    """Sums by group number 0 .. groups - 1."""

    def total(values: Floats) -> Floats:
        found: Floats = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
        return found

    excess, kept = w * (w - 1.0), np.bincount(group, minlength=groups).astype(np.float64)
    first, last = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(first, group, place)
    np.maximum.at(last, group, place)
    skewness, kurtosis = _shape(group, kept, x)
    return Sums(
        kept=kept,
        w=total(w),
        ww=total(w * w),
        wx=total(w * x),
        vx=total(excess * x),
        vxx=total(excess * x * x),
        skewness=skewness,
        kurtosis=kurtosis,
        span=last - first + 1.0,
        sure=total((w <= 1.0).astype(np.float64)),
        vv=total(excess * excess),
    )


def _shape(group: npt.NDArray[np.int64], kept: Floats, x: Floats) -> tuple[Floats, Floats]:
    def mean(values: Floats) -> Floats:
        return np.bincount(group, weights=values, minlength=len(kept)) / kept

    with np.errstate(all="ignore"):
        centred = x - mean(x)[group]
        second = mean(centred * centred)
        squared = centred * centred
        skewness = np.where(second > 0.0, mean(squared * centred) / second**1.5, 0.0)
        kurtosis = np.where(second > 0.0, mean(squared * squared) / second**2 - 3.0, 0.0)
    return skewness, kurtosis


def estimates(s: Sums, z: float, least_kept: int = LEAST_KEPT) -> Estimates:
    """`z`: the standard normal quantile of the confidence, 1.96 for 95 %."""
    with np.errstate(all="ignore"):
        count = _count(s, z)
        avg = _avg(s, z)
        total = _sum(count, avg)
    enough = (s.kept >= least_kept) & (s.w * s.w >= LEAST_EFFECTIVE * s.ww)
    enough |= (s.ww <= s.w) & (s.kept > 0)
    return Estimates(
        count=_masked(count, enough), sum=_masked(total, enough), avg=_masked(avg, enough)
    )


def distinct(group: npt.NDArray[np.int64], groups: int, key: Any, w: Floats, z: float) -> Bounded:
    """How many different keys each group had; w is 1 / the limit of a kept tuple's batch."""
    pairs, inverse = np.unique(np.stack([group, key]), axis=1, return_inverse=True)
    least = np.full(pairs.shape[1], np.inf)
    np.minimum.at(least, inverse.ravel(), w)
    found = sums(pairs[0], groups, least, np.zeros_like(least), np.zeros_like(least))
    return estimates(replace(found, span=np.full(groups, np.inf)), z).count


def _count(s: Sums, z: float) -> Bounded:
    thinned = s.w - s.sure
    c = np.where(thinned > 0.0, (s.ww - s.w) / thinned, 0.0)
    positions = s.span * (s.kept + 1.0) / (s.kept - 1.0) + CUT_POSITIONS
    span = np.maximum(thinned, positions * thinned / s.w)
    span = np.where(thinned > 0.0, span, 1.0)
    a, b = 1.0 + z * z * c / span, thinned + z * z * c / 2.0
    root = np.sqrt(np.maximum(0.0, b * b - a * thinned * thinned))
    low = np.maximum(s.kept, s.sure + (b - root) / a)
    return Bounded(estimate=s.w, low=low, high=s.sure + (b + root) / a)


def _avg(s: Sums, z: float) -> Bounded:
    mean, v = s.wx / s.w, s.ww - s.w
    residual = np.maximum(0.0, s.vxx - 2.0 * mean * s.vx + mean * mean * v)
    k = s.w * s.w / s.ww
    d = np.maximum(2.0, np.where(s.vv > 0.0, v * v / s.vv, 2.0))
    error = np.sqrt(residual * d / (d - 1.0)) / s.w
    t = student(z, np.maximum(4.0, (d - 1.0) / (1.0 + np.maximum(0.0, s.kurtosis) / 2.0)))
    shift = np.clip(_shift(s, k, z), -t, t)
    return Bounded(estimate=mean, low=mean + (shift - t) * error, high=mean + (shift + t) * error)


def _shift(s: Sums, k: Floats, z: float) -> Floats:
    g = s.skewness * np.sqrt(k * (k - 1.0)) / (k - 2.0) / np.sqrt(k)  # unbiased for normal values
    unseen = np.maximum(0.0, 1.0 - s.kept / s.w)
    a = g * np.sqrt(unseen)
    b = np.where(unseen > 0.0, g * (2.0 * unseen - 1.0) / np.sqrt(unseen), 0.0)
    return a / 2.0 - (b - 3.0 * a) * (z * z - 1.0) / 6.0


def _sum(count: Bounded, avg: Bounded) -> Bounded:
    n, m = count.estimate, avg.estimate
    below, above = np.abs(m) * (n - count.low), np.abs(m) * (count.high - n)
    less, more = np.where(m >= 0.0, below, above), np.where(m >= 0.0, above, below)
    return Bounded(
        estimate=n * m,
        low=n * m - np.hypot(less, n * (m - avg.low)),
        high=n * m + np.hypot(more, n * (avg.high - m)),
    )


def student(z: float, degrees: Any) -> Any:
    """Student's t quantile from the normal one (Cornish-Fisher; within 1 % from 5 degrees on)."""
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _masked(bounded: Bounded, enough: npt.NDArray[np.bool]) -> Bounded:
    low, high = (np.where(enough, side, np.nan) for side in (bounded.low, bounded.high))
    return Bounded(estimate=bounded.estimate, low=low, high=high)

"""What a micro-batch takes: o + c n + s m seconds, learned on line. Standard library only."""

import math

from spillway.load.matrices import Matrix, Vector, inverse, not_negative
from spillway.model import BatchRecord, Prices

_ZERO: Vector = (0.0, 0.0, 0.0)
_FORGETTING = 0.95  # a memory of about twenty batches: follows the JVM's warm-up
SHORTEST_S = 1e-6  # a batch that took less was not measured
OUTLIER = 2.5  # standard deviations; what lies beyond counts as this far
_STREAK = 3  # so many outliers on one side in a row are a change, not a pause
_CHANGE_KEEPS = 0.05  # of what was learned before a change
_NOISE_RANGE = (0.02, 0.4)  # relative standard deviation of a duration
_PACE_GAIN = 0.3  # of a surprise, in the factor between what batches take and what is predicted
_PACE_RANGE = (0.25, 4.0)
# What nothing tells apart stays as it was: o, k n and s (n + m) are drawn towards an anchor with
# these standard deviations (shares of a typical batch). While nothing is shed n and m are the same,
# and only their sum can be learned: it goes to k, because an s that is too large would make the
# first batch that sheds look hopeless.
_PRIOR_SHARE: Vector = (0.2, 0.15, 0.015)
_TOLD_APART_SHARE = 0.15  # of s (n + m) instead, once the kept share of batches has varied
_TOLD_APART = 0.05  # squared sine of the angle between what was kept and what was scanned
_NOTHING_SHED = 1.02  # n + m over 2 n, at most
# The anchor is the estimate of the last time when the sizes of the batches differed more than noise
# makes them differ. It must not follow like batches: a slow moment makes a batch long and the next
# one large, so in a steady stream duration and size go together without one causing the other.
_VARIED = 2.0  # standard deviation of the sizes over that of the noise, both relative
# The anchor before that. A few tuples on a cold JVM say nothing about c, and hoping is safe: k
# times the tuples take at most k times as long, and batches grow by steps.
_FIRST_SPLIT: Vector = (0.9, 0.1, 0.0)
_PRIOR_INFORMATION = tuple(share**-2 for share in _PRIOR_SHARE)
_TOLD_APART_INFORMATION = (*_PRIOR_INFORMATION[:2], _TOLD_APART_SHARE**-2)


class BatchModel:
    """Least squares with forgetting, robust, and non-negative.

    Scanning a tuple is the smaller part of keeping it: c = k + s, and o, k and s are what is
    estimated, over (1, n, n + m). Without that bound a machine that warms up while less and less
    is scanned can lay the price of keeping to scanning: then keeping looks free, nothing is shed,
    and batches that shed nothing never show the error.

    The moments of past batches fade by 5 % a batch; o, k and s are solved from them anew after
    every batch (active set: what would be negative is zero, and the others are solved again), so a
    constraint leaves no trace in the state. Where batches are too much alike to tell them
    apart, what was learned before stands. Durations are weighted by their relative error. Huber:
    beyond 2.5 standard deviations the weight falls so that a pause of the JVM counts as no more
    than that. Three such in a row on one side are a change: then the past is all but forgotten.

    When the machine or the query changes, every batch is off by about the same factor. That factor
    (`pace`) is followed within a few batches; o, c and s take their time behind it.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.noise = 0.1  # relative standard deviation of a duration around its prediction
        self.pace = 1.0  # what batches take over what o, c and s predict
        self._theta = _ZERO  # o, k and s
        self._anchored: Vector | None = None
        self._typical = _ZERO  # duration, n, n + m
        self._squares: tuple[float, ...] = (
            0.0,
        ) * 6  # sum of weight x x', x = (1, n, n + m): the upper triangle
        self._products = _ZERO  # sum of weight x duration
        self._streak = 0
        self._scale: Vector = (1.0, 1.0, 1.0)  # from here on: what follows from the above
        self._covariance: Matrix = (_ZERO, _ZERO, _ZERO)

    @property
    def overhead_s(self) -> float:
        return self._theta[0]

    @property
    def cost_s(self) -> float:
        return self._theta[1] + self._theta[2]

    @property
    def scan_s(self) -> float:
        return self._theta[2]

    @property
    def known(self) -> bool:
        """Whether a batch with tuples in it has been seen."""
        return self.cost_s > 0.0

    def prices(self) -> Prices | None:
        """What is known now; None before a batch with tuples in it."""
        if not self.known:
            return None
        (_, u, v), ((oo, ok, os), (_, kk, ks), (_, _, ss)) = self._scale, self._covariance
        return Prices(
            fixed_s=self.overhead_s,
            kept_s=self.cost_s,
            scanned_s=self.scan_s,
            pace=self.pace,
            noise=self.noise,
            doubts=(oo, ok * u, os * v, kk * u * u, ks * u * v, ss * v * v),
        )

    def learn(self, batch: BatchRecord) -> None:
        if batch.kept_tuples <= 0 or not batch.duration_s > SHORTEST_S:
            return
        kept, scanned = float(batch.kept_tuples), float(batch.scanned_tuples)
        seen = batch.duration_s, kept, kept + scanned
        before = self.prices()
        predicted_s = before.duration_s(kept, scanned) if before else batch.duration_s
        doubt_s = before.doubt_s(kept, scanned) if before else 0.0
        if before:
            self._follow(batch.duration_s, predicted_s)
        self.batches += 1
        rate = max(0.1, 1.0 / self.batches)
        d, n, m = self._typical
        self._typical = (
            d + rate * (seen[0] - d),
            n + rate * (seen[1] - n),
            m + rate * (seen[2] - m),
        )
        trust = self._trust(batch.duration_s, predicted_s, doubt_s)
        # Relative errors: a short batch tells as much about o as a long one about c.
        # A prediction that was far too long must not make the batch that shows it count little,
        # nor a batch that was timed wrongly make all others count nothing.
        scale_s = max(0.2 * self._typical[0], min(predicted_s, 2.0 * batch.duration_s))
        weight = trust / scale_s**2
        self._remember(weight, seen)
        self._estimate()

    def resized(self, factor: float) -> None:
        """The machine has so many times the cores: tuples take their part of the time, the fixed
        price stays. What was seen counts as if it had been seen there."""
        o, k, s = self._theta
        self._theta = (o, k / factor, s / factor)
        if self._anchored is not None:
            fixed_s, kept_s, scanned_s = self._anchored
            self._anchored = (fixed_s, kept_s / factor, scanned_s / factor)
        duration_s, kept, both = self._typical
        self._typical = (self._elsewhere_s(duration_s, factor), kept, both)
        p, q, r = self._products
        a, b, c = self._squares[:3]
        stays = o * (1.0 - 1.0 / factor)
        self._products = (
            p / factor + stays * a,
            q / factor + stays * b,
            r / factor + stays * c,
        )
        u, w = 1.0 / factor, 1.0 / factor**2
        (oo, ok, os), (_, kk, ks), (_, _, ss) = self._covariance
        self._covariance = (
            (oo, ok * u, os * u),
            (ok * u, kk * w, ks * w),
            (os * u, ks * w, ss * w),
        )

    def _elsewhere_s(self, duration_s: float, factor: float) -> float:
        fixed_s = min(self.overhead_s, duration_s)
        return fixed_s + (duration_s - fixed_s) / factor

    def _follow(self, duration_s: float, predicted_s: float) -> None:
        """Move the pace towards what a batch took; a single pause moves it by a bounded step."""
        surprise = math.log(duration_s / max(predicted_s, SHORTEST_S) / self.pace)
        limit = OUTLIER * self.noise
        low, high = _PACE_RANGE
        step = _PACE_GAIN * min(max(-limit, surprise), limit)
        self.pace = min(max(low, self.pace * math.exp(step)), high)

    def _remember(self, weight: float, seen: Vector) -> None:
        duration_s, n, m = seen
        f, wn, wm = _FORGETTING, weight * n, weight * m
        a, b, c, d, e, g = self._squares
        self._squares = (
            f * a + weight,
            f * b + wn,
            f * c + wm,
            f * d + wn * n,
            f * e + wn * m,
            f * g + wm * m,
        )
        p, q, r = self._products
        self._products = (
            f * p + weight * duration_s,
            f * q + wn * duration_s,
            f * r + wm * duration_s,
        )

    def _estimate(self) -> None:
        """Solve for o, k and s in seconds of a typical batch: o, k n and s (n + m)."""
        anchor, duration_s = self._anchor(), self._typical[0]
        information = self._weigh()
        if information is None:
            return
        _, u, v = self._scale
        k, unit, prior = 1.0 / self.noise**2, 1.0 / duration_s**2, self._prior_information()
        wanted = (
            self._products[0] * k + prior[0] * unit * anchor[0],
            self._products[1] * u * k + prior[1] * unit * anchor[1],
            self._products[2] * v * k + prior[2] * unit * anchor[2],
        )
        o, kn, snm = not_negative(self._covariance, information, wanted)
        # The cost of a tuple is never nothing: a thousandth of a typical batch at least.
        self._theta = (o, max(1e-3 * duration_s, kn) * u, snm * v)
        if self._sizes_vary():
            self._anchored = self._theta
        self._forget_scanning()

    def _weigh(self) -> Matrix | None:
        """What is known about o, k n and s (n + m), and the covariance of their estimates.

        None when rounding leaves nothing to tell: then the estimates stay as they are.
        """
        duration_s, kept, both = self._typical
        u, v = 1.0 / max(1.0, kept), 1.0 / max(1.0, both)
        k, unit = 1.0 / self.noise**2, 1.0 / duration_s**2
        aa, ab, ac, bb, bc, cc = self._squares
        ab, ac, bc = ab * u * k, ac * v * k, bc * u * v * k
        prior = self._prior_information()
        information = (
            (aa * k + prior[0] * unit, ab, ac),
            (ab, bb * u * u * k + prior[1] * unit, bc),
            (ac, bc, cc * v * v * k + prior[2] * unit),
        )
        covariance = inverse(information)
        if covariance is None:
            return None
        self._scale, self._covariance = (1.0, u, v), covariance
        return information

    def _anchor(self) -> Vector:
        """What o, k n and s (n + m) are drawn towards, in seconds of a typical batch.

        The anchor says how a typical batch's time splits up, never how long it takes: an old price
        that no longer fits must not hold against every batch since.
        """
        duration_s, kept, both = self._typical
        o, k, s = _FIRST_SPLIT
        if self._anchored is not None:
            o, k, s = self._anchored
            k, s = k * max(1.0, kept), s * max(1.0, both)
        share = duration_s / (o + k + s)
        return o * share, k * share, s * share

    def _prior_information(self) -> tuple[float, ...]:
        """Batches that keep different shares tell s from k: then an old split must not hold."""
        return _TOLD_APART_INFORMATION if self._told_apart() else _PRIOR_INFORMATION

    def _told_apart(self) -> bool:
        kept, cross, both = self._squares[3], self._squares[4], self._squares[5]
        scanned = both - 2.0 * cross + kept  # the products of n and m from those of n and n + m
        cross -= kept
        return kept * scanned > 0.0 and 1.0 - cross**2 / (kept * scanned) > _TOLD_APART

    def _forget_scanning(self) -> None:
        """While nothing is shed, what is thought of s goes over to k, as fast as all else fades."""
        _, kept, both = self._typical
        if self._anchored is None or self._told_apart() or both > _NOTHING_SHED * 2.0 * kept:
            return
        o, k, s = self._anchored
        faded = (1.0 - _FORGETTING) * s
        self._anchored = o, k + 2.0 * faded, s - faded

    def _sizes_vary(self) -> bool:
        weight, tuples, squares = self._squares[0], self._squares[1], self._squares[3]
        return tuples > 0.0 and weight * squares / tuples**2 - 1.0 > (_VARIED * self.noise) ** 2

    def _trust(self, duration_s: float, predicted_s: float, doubt_s: float) -> float:
        """Huber's weight of a batch; keeps the noise level, tells a pause from a change."""
        surprise_s = duration_s - predicted_s
        limit_s = OUTLIER * math.hypot(doubt_s, self.noise * predicted_s)
        low, high = _NOISE_RANGE
        relative = min(abs(surprise_s) / max(predicted_s, 1e-9), OUTLIER * self.noise)
        expected = math.hypot(self.noise, doubt_s / max(predicted_s, 1e-9))
        # Only the part of a surprise that the doubt does not explain is noise.
        explained = relative * self.noise / expected
        self.noise = min(max(low, math.sqrt(0.95 * self.noise**2 + 0.05 * explained**2)), high)
        if abs(surprise_s) <= limit_s:
            self._streak = 0
            return 1.0
        sign = 1 if surprise_s > 0.0 else -1
        self._streak = self._streak + sign if self._streak * sign > 0 else sign
        if abs(self._streak) >= _STREAK:
            self._streak = 0
            self._squares = tuple(_CHANGE_KEEPS * value for value in self._squares)
            p, q, r = self._products
            self._products = (_CHANGE_KEEPS * p, _CHANGE_KEEPS * q, _CHANGE_KEEPS * r)
            return 1.0
        return limit_s / abs(surprise_s)

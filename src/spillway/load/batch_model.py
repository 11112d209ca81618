"""What a micro-batch takes: o + c n + s m seconds, learned on line. Standard library only."""

import math
from collections.abc import Mapping

from spillway.model import BatchRecord

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]

_ZERO: Vector = (0.0, 0.0, 0.0)
_FORGETTING = 0.95  # a memory of about twenty batches: follows the JVM's warm-up
_OUTLIER = 2.5  # standard deviations; what lies beyond counts as this far
_STREAK = 3  # so many outliers on one side in a row are a change, not a pause
_NOISE_RANGE = (0.02, 0.4)  # relative standard deviation of a duration
# Prior standard deviations of o, c n and s m, as shares of a typical batch. When all batches are
# alike nothing tells o, c and s apart: a batch is then split between them in the proportion of the
# squares of these, and no estimate runs away.
_PRIOR_SHARE: Vector = (0.4, 0.6, 0.05)


class BatchModel:
    """Least squares over (1, n, m) with forgetting, robust, with a prior, and non-negative.

    The moments of past batches fade by 5 % a batch; o, c and s are solved from them anew after
    every batch (active set: what would be negative is zero, and the others are solved again), so
    neither a constraint nor a long stretch of like batches leaves a trace in the state. Durations
    are weighted by their relative error. Huber: beyond 2.5 standard deviations the weight falls so
    that a pause of the JVM counts as no more than that. Three such in a row on one side are a
    change: then the past is all but forgotten.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.noise = 0.1  # relative standard deviation of a duration around its prediction
        self._theta = _ZERO
        self._typical = _ZERO  # duration, kept, scanned
        self._squares: Matrix = (_ZERO, _ZERO, _ZERO)  # sum of weight x x'
        self._products = _ZERO  # sum of weight x duration
        self._streak = 0

    @property
    def overhead_s(self) -> float:
        return self._theta[0]

    @property
    def cost_s(self) -> float:
        return self._theta[1]

    @property
    def scan_s(self) -> float:
        return self._theta[2]

    @property
    def known(self) -> bool:
        """Whether a batch with tuples in it has been seen."""
        return self.batches > 0

    def duration_s(self, kept: float, scanned: float) -> float:
        o, c, s = self._theta
        return o + c * kept + s * scanned

    def doubt_s(self, kept: float, scanned: float) -> float:
        """Standard deviation of the prediction that is due to the estimates, not to the noise."""
        scale = self._scale()
        x = (scale[0], kept * scale[1], scanned * scale[2])
        solved = _solve(self._information(scale), x, (True, True, True))
        return math.sqrt(max(0.0, _dot(x, solved)))

    def learn(self, batch: BatchRecord) -> None:
        if batch.kept_tuples <= 0 or not batch.duration_s > 0.0:
            return
        seen = batch.duration_s, float(batch.kept_tuples), float(batch.scanned_tuples)
        x = (1.0, seen[1], seen[2])
        predicted_s = self.duration_s(x[1], x[2]) if self.batches else batch.duration_s
        self.batches += 1
        rate = max(0.1, 1.0 / self.batches)
        self._typical = _mix(1.0 - rate, self._typical, rate, seen)
        trust = self._trust(batch.duration_s, predicted_s, self.doubt_s(x[1], x[2]))
        # Relative errors: a short batch tells as much about o as a long one about c.
        weight = trust / max(predicted_s, 0.2 * self._typical[0]) ** 2
        a, b, c = self._squares
        self._squares = (
            _mix(_FORGETTING, a, weight * x[0], x),
            _mix(_FORGETTING, b, weight * x[1], x),
            _mix(_FORGETTING, c, weight * x[2], x),
        )
        self._products = _mix(_FORGETTING, self._products, weight * batch.duration_s, x)
        self._estimate()

    def _estimate(self) -> None:
        scale = self._scale()
        information = self._information(scale)
        precision = 1.0 / self.noise**2
        wanted = tuple(p * u * precision for p, u in zip(self._products, scale, strict=True))
        free = [True, True, True]
        solved = _solve(information, (wanted[0], wanted[1], wanted[2]), tuple(free))
        while min(solved) < 0.0:
            free[solved.index(min(solved))] = False
            solved = _solve(information, (wanted[0], wanted[1], wanted[2]), tuple(free))
        floor = 1e-3  # of a typical batch: the cost of a tuple is never nothing
        shares = (solved[0], max(floor * self._typical[0], solved[1]), solved[2])
        self._theta = (shares[0] * scale[0], shares[1] * scale[1], shares[2] * scale[2])

    def _scale(self) -> Vector:
        """Works in seconds of a typical batch: o, c n and s m."""
        return 1.0, 1.0 / max(1.0, self._typical[1]), 1.0 / max(1.0, self._typical[2])

    def _information(self, scale: Vector) -> Matrix:
        """Inverse covariance of the scaled estimates: what was seen, and the prior."""
        precision = 1.0 / self.noise**2
        duration_s = max(1e-9, self._typical[0])
        rows = []
        for i in range(3):
            row = [self._squares[i][j] * scale[i] * scale[j] * precision for j in range(3)]
            row[i] += 1.0 / (_PRIOR_SHARE[i] * duration_s) ** 2
            rows.append((row[0], row[1], row[2]))
        return rows[0], rows[1], rows[2]

    def _trust(self, duration_s: float, predicted_s: float, doubt_s: float) -> float:
        """Huber's weight of a batch; keeps the noise level, tells a pause from a change."""
        surprise_s = duration_s - predicted_s
        limit_s = _OUTLIER * math.hypot(doubt_s, self.noise * predicted_s)
        low, high = _NOISE_RANGE
        relative = min(abs(surprise_s) / max(predicted_s, 1e-9), _OUTLIER * self.noise)
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
            a, b, c = self._squares
            self._squares = (_mix(0.05, a), _mix(0.05, b), _mix(0.05, c))
            self._products = _mix(0.05, self._products)
            return 1.0
        return limit_s / abs(surprise_s)

    def to_dict(self) -> dict[str, int | str]:
        """Integers and strings only, so that it can ride in an offset; exact both ways."""
        a, b, c = self._squares
        upper = (a[0], a[1], a[2], b[1], b[2], c[2])
        numbers = (*self._theta, *self._typical, *self._products, *upper, self.noise)
        return {
            "batches": self.batches,
            "streak": self._streak,
            "numbers": " ".join(repr(number) for number in numbers),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, int | str]) -> "BatchModel":
        model = cls()
        model.batches, model._streak = int(stored["batches"]), int(stored["streak"])
        n = [float(word) for word in str(stored["numbers"]).split()]
        model._theta, model._typical = (n[0], n[1], n[2]), (n[3], n[4], n[5])
        model._products = (n[6], n[7], n[8])
        model._squares = ((n[9], n[10], n[11]), (n[10], n[12], n[13]), (n[11], n[13], n[14]))
        model.noise = n[15]
        return model


def _mix(a: float, x: Vector, b: float = 0.0, y: Vector = _ZERO) -> Vector:
    return a * x[0] + b * y[0], a * x[1] + b * y[1], a * x[2] + b * y[2]


def _dot(x: Vector, y: Vector) -> float:
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


def _solve(a: Matrix, b: Vector, free: tuple[bool, ...]) -> Vector:
    """a x = b for a positive definite, with x = 0 where not free (Gauss, no pivoting needed)."""
    index = [i for i in range(3) if free[i]]
    rows = [[a[i][j] for j in index] + [b[i]] for i in index]
    for k in range(len(index)):
        pivot = rows[k][k]
        for row in rows[k + 1 :]:
            factor = row[k] / pivot
            for j in range(k, len(index) + 1):
                row[j] -= factor * rows[k][j]
    found = [0.0, 0.0, 0.0]
    for k in range(len(index) - 1, -1, -1):
        known = sum(rows[k][j] * found[index[j]] for j in range(k + 1, len(index)))
        found[index[k]] = (rows[k][-1] - known) / rows[k][k]
    return found[0], found[1], found[2]

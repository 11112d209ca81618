"""What a micro-batch takes: o + c n + s m seconds, learned on line. Standard library only."""

import math
from collections.abc import Callable, Mapping

from spillway.model import BatchRecord

Vector = tuple[float, float, float]

_FORGETTING = 0.95  # a memory of about twenty batches: follows the JVM's warm-up
_OUTLIER = 2.5  # standard deviations; what lies beyond counts as this far
_STREAK = 3  # so many outliers on one side in a row are a change, not a pause
_NOISE_RANGE = (0.02, 0.5)  # relative standard deviation of a duration
# Prior standard deviations of o, c n and s m, as shares of a typical batch. They also bound the
# covariance: when all batches are alike nothing tells o, c and s apart, and whatever is left
# unexplained is split between them in these proportions instead of growing without limit.
_PRIOR_SHARE = (0.4, 0.6, 0.05)


class BatchModel:
    """Recursive least squares with forgetting over (1, n, m), robust and non-negative.

    An innovation is clipped at 2.5 standard deviations (Huber's weight), so a pause of the JVM
    moves the estimates a little once. Three clipped innovations of one sign in a row open the
    covariance: then it was a change. The covariance never exceeds the prior's, scaled to the
    batches seen, and o, c and s never fall below zero.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.noise = 0.1  # relative standard deviation of a duration around its prediction
        self._theta: Vector = (0.0, 0.0, 0.0)
        self._cov = [[0.0] * 3 for _ in range(3)]
        self._typical: Vector = (0.0, 0.0, 0.0)  # duration, kept, scanned
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
        return self._theta[1] > 0.0

    def duration_s(self, kept: float, scanned: float) -> float:
        o, c, s = self._theta
        return o + c * kept + s * scanned

    def doubt_s(self, kept: float, scanned: float) -> float:
        """Standard deviation of the prediction that is due to the estimates, not to the noise."""
        return math.sqrt(max(0.0, self._spread((1.0, kept, scanned))[1]))

    def learn(self, batch: BatchRecord) -> None:
        if batch.kept_tuples <= 0 or not batch.duration_s > 0.0:
            return
        seen = batch.duration_s, float(batch.kept_tuples), float(batch.scanned_tuples)
        if self.batches == 0:
            self._begin(seen)
        self.batches += 1
        rate = max(0.1, 1.0 / self.batches)
        before = self._typical
        self._typical = _zip(before, seen, lambda old, new: old + rate * (new - old))
        self._update((1.0, seen[1], seen[2]), seen[0])

    def _begin(self, seen: Vector) -> None:
        """Half of the first batch is taken as fixed, half as cost of its tuples."""
        duration_s, kept, _ = seen
        self._typical = seen
        self._theta = (duration_s / 2.0, duration_s / 2.0 / kept, 0.0)
        for i, bound in enumerate(self._bounds()):
            self._cov[i][i] = bound

    def _bounds(self) -> Vector:
        duration_s, kept, scanned = self._typical
        scale = (1.0, max(1.0, kept), max(1.0, scanned))
        return _zip(_PRIOR_SHARE, scale, lambda share, size: (share * duration_s / size) ** 2)

    def _spread(self, x: Vector) -> tuple[Vector, float]:
        """(P x, x' P x)."""
        p = self._cov
        px = (
            p[0][0] * x[0] + p[0][1] * x[1] + p[0][2] * x[2],
            p[1][0] * x[0] + p[1][1] * x[1] + p[1][2] * x[2],
            p[2][0] * x[0] + p[2][1] * x[1] + p[2][2] * x[2],
        )
        return px, px[0] * x[0] + px[1] * x[1] + px[2] * x[2]

    def _update(self, x: Vector, duration_s: float) -> None:
        self._forget()
        predicted_s = max(1e-9, self.duration_s(x[1], x[2]))
        px, doubt = self._spread(x)
        total = doubt + (self.noise * predicted_s) ** 2
        limit_s = _OUTLIER * math.sqrt(total)
        surprise_s = duration_s - predicted_s
        clipped_s = min(max(-limit_s, surprise_s), limit_s)
        self._watch(surprise_s, clipped_s, predicted_s)
        o, c, s = (t + gain / total * clipped_s for t, gain in zip(self._theta, px, strict=True))
        floor = 1e-6 * self._typical[0] / max(1.0, self._typical[1])
        self._theta = (max(0.0, o), max(floor, c), max(0.0, s))
        for i in range(3):
            for j in range(3):
                self._cov[i][j] -= px[i] * px[j] / total

    def _forget(self) -> None:
        """Older batches count less; unexcited directions stop at the prior."""
        bounds = self._bounds()
        p = self._cov
        scales = []
        for i in range(3):
            grown = p[i][i] / _FORGETTING
            scales.append(math.sqrt(bounds[i] / grown) if grown > bounds[i] else 1.0)
        for i in range(3):
            for j in range(3):
                p[i][j] *= scales[i] * scales[j] / _FORGETTING

    def _watch(self, surprise_s: float, clipped_s: float, predicted_s: float) -> None:
        """The noise level, and the difference between a pause and a change."""
        low, high = _NOISE_RANGE
        relative = min(abs(clipped_s) / predicted_s, _OUTLIER * self.noise)
        # 0.05 of a step each: about as long a memory as the estimates have.
        variance = 0.95 * self.noise**2 + 0.05 * relative**2
        self.noise = min(max(low, math.sqrt(variance)), high)
        if clipped_s == surprise_s:
            self._streak = 0
            return
        sign = 1 if surprise_s > 0.0 else -1
        self._streak = self._streak + sign if self._streak * sign > 0 else sign
        if abs(self._streak) >= _STREAK:
            self._streak = 0
            self._open()

    def _open(self) -> None:
        for i, bound in enumerate(self._bounds()):
            for j in range(3):
                self._cov[i][j] = bound if i == j else 0.0

    def to_dict(self) -> dict[str, int | str]:
        """Integers and strings only, so that it can ride in an offset; exact both ways."""
        p = self._cov
        upper = (p[0][0], p[0][1], p[0][2], p[1][1], p[1][2], p[2][2])
        numbers = (*self._theta, *self._typical, *upper, self.noise)
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
        model._cov = [[n[6], n[7], n[8]], [n[7], n[9], n[10]], [n[8], n[10], n[11]]]
        model.noise = n[12]
        return model


def _zip(a: Vector, b: Vector, f: Callable[[float, float], float]) -> Vector:
    return f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2])

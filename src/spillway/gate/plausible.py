"""What batches may take, as far as the last of them leave it open.

A batch of n tuples takes (o + c n) f(t). For the first minute of a run f falls, because a JVM warms
up: by 1 + A e^(-t / T). Later it may drift or jump, because others use the machine. None of it is
known, and a few batches say little: large ones came later, so were they cheap or was the machine
warmer? They took long and then grew, so did they take long because they were large? So every
combination is kept in mind that the batches do not speak against, and what something takes at least
is the least among them, on a machine as warm as it will become.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.model import BatchRecord

Floats = npt.NDArray[np.float64]

_COLD, _WARMS_S = np.meshgrid([0.5, 1.0, 2.0, 3.5, 6.0, 9.0], [3.0, 6.0, 11.0, 20.0])
_DRIFTS = np.array([-0.1, -0.03, 0.0, 0.03, 0.1])  # longer, per second
_OF_FIXED = np.array([0.0, *np.geomspace(0.02, 500.0, 24)])  # what the most tuples took, over o
_SHARES = _OF_FIXED / (1.0 + _OF_FIXED)  # of their batch
_DOUBT = 6.0  # squared standard deviations: what lies within cannot be told apart
_FAR = 3.0  # standard deviations that a single batch counts at most: a pause is no trend
_MEMORY_S, _MEMORY_BATCHES = 15.0, 5.0  # the longer of both
_LEAST_NOISE = 0.05  # of a duration, relative
_STEPS = 8  # batches since when others may hold the machine
_RECENT = 18  # batches, and before them one in
_EVERY_S = 2.0  # for so many times
_EARLIER = 20


class Seen:
    """The batches that say what can be carried: all of the last ones, some of those before."""

    def __init__(self) -> None:
        self.began_s: float | None = None  # when the first batch of the run ended
        self._recent: deque[BatchRecord] = deque()
        self._earlier: deque[BatchRecord] = deque(maxlen=_EARLIER)

    def __len__(self) -> int:
        return len(self._recent)

    def add(self, batch: BatchRecord) -> None:
        if self._recent and batch.ended_s < self.last.ended_s:  # the clock was set back
            self._recent.clear()
            self._earlier.clear()
            self.began_s = None
        if self.began_s is None:
            self.began_s = batch.ended_s
        self._recent.append(batch)
        if len(self._recent) > _RECENT:
            left = self._recent.popleft()
            if not self._earlier or left.ended_s - self._earlier[-1].ended_s >= _EVERY_S:
                self._earlier.append(left)

    @property
    def lasts_s(self) -> float:
        """How long the run has been seen."""
        return 0.0 if self.began_s is None else self.last.ended_s - self.began_s

    @property
    def most_tuples(self) -> int:
        """In one batch."""
        return max(batch.kept_tuples for batch in self.all())

    @property
    def last(self) -> BatchRecord:
        return self._recent[-1]

    def all(self) -> list[BatchRecord]:
        return [*self._earlier, *self._recent]


@dataclass(frozen=True)
class Plausible:
    """One entry for every combination that is left, on a machine that is warm."""

    fixed_s: Floats  # of a batch
    tuple_s: Floats  # of a tuple

    @classmethod
    def of(cls, seen: Seen) -> "Plausible":
        """By batches that shed nothing."""
        batches = seen.all()
        kept = np.array([b.kept_tuples for b in batches], dtype=float)
        ended_s = np.array([b.ended_s for b in batches])
        took = np.log([b.duration_s for b in batches])
        shape = np.log(1.0 - _SHARES[:, None] + _SHARES[:, None] * kept / kept.max())
        curves = _curves(ended_s - (seen.began_s or 0.0), ended_s - ended_s[-1])
        left = took - shape - curves[:, None, :]  # curve, share, batch
        left = np.concatenate((left, _slowed(took - shape)), dtype=np.float32)
        level = np.median(left, axis=-1)
        left -= level[..., None]
        noise = max(_LEAST_NOISE, 1.48 * float(np.median(np.abs(left), axis=-1).min()))
        weight = _weights(ended_s)
        left /= noise
        middle = np.clip(left, -_FAR, _FAR) @ weight / weight.sum()
        misfit = np.minimum(np.abs(left - middle[..., None]), _FAR) ** 2 @ weight
        misfit[len(curves) :] += _FAR**2  # no likelier than that a single batch met a pause
        curve, share = np.nonzero(misfit <= misfit.min() + _DOUBT)
        warm_s = np.exp((level + noise * middle)[curve, share].astype(float))
        return cls(
            fixed_s=warm_s * (1.0 - _SHARES[share]), tuple_s=warm_s * _SHARES[share] / kept.max()
        )

    @property
    def least_fixed_s(self) -> float:
        return float(np.min(self.fixed_s))

    @property
    def most_fixed_s(self) -> float:
        return float(np.max(self.fixed_s))

    def least_s(self, tuples: float) -> float:
        """What a batch of so many takes at least."""
        return float(np.min(self.fixed_s + self.tuple_s * tuples))

    def least_tuples_s(self, tuples: float) -> float:
        """The same of the tuples alone: what leaving all of them out would save."""
        return float(np.min(self.tuple_s)) * tuples

    def most_per_s(self, length_s: float) -> float:
        """What batches of this length carry at most."""
        left_s = np.maximum(0.0, length_s - self.fixed_s)
        free = np.where(left_s > 0.0, np.inf, 0.0)
        tuples = np.divide(left_s, self.tuple_s, out=free, where=self.tuple_s > 0.0)
        return float(np.max(tuples)) / length_s


def _curves(age_s: Floats, since_s: Floats) -> Floats:
    """log f for every curve and batch: zero when it is warm, and now for a drift."""
    decay = np.exp(-np.maximum(0.0, age_s) / _WARMS_S.reshape(-1, 1))
    warming = np.log1p(_COLD.reshape(-1, 1) * decay)
    return np.concatenate((warming, _DRIFTS[:, None] * since_s))


def _slowed(took: Floats) -> Floats:
    """Others have taken the machine, at one of the last batches: all before it took less by the
    same factor."""
    found = []
    for ago in range(1, min(_STEPS, took.shape[-1] - _STEPS) + 1):
        before, after = np.median(took[:, :-ago], axis=-1), np.median(took[:, -ago:], axis=-1)
        slower = np.maximum(0.0, after - before)
        found.append(took.copy())
        found[-1][:, :-ago] += slower[:, None]
    return np.stack(found) if found else np.empty((0, *took.shape))


def _weights(ended_s: Floats) -> npt.NDArray[np.float32]:
    ago_s = ended_s[-1] - ended_s
    ago = np.arange(len(ago_s))[::-1]
    faded = np.exp(-np.minimum(ago_s / _MEMORY_S, ago / _MEMORY_BATCHES))
    return np.asarray(faded, dtype=np.float32)

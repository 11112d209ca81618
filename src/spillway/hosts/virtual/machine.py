"""What micro-batches take on a machine that is only arithmetic."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spillway.errors import require
from spillway.model import Prices


class Cost(Protocol):
    """What a batch takes."""

    def duration_s(
        self, kept: int, scanned: int, time_s: float, factor: float, rng: np.random.Generator
    ) -> float: ...


@dataclass(frozen=True, kw_only=True)
class RecordedCost:
    """What batches took at that time of a recorded run: o + c n + s m, with prices in steps."""

    times_s: Sequence[float]  # from when on each of the prices held
    prices: Sequence[Prices]

    def duration_s(
        self, kept: int, scanned: int, time_s: float, factor: float, rng: np.random.Generator
    ) -> float:
        known = self.prices[max(0, bisect_right(self.times_s, time_s) - 1)]
        return factor * known.pace * known.duration_s(kept, scanned)


@dataclass(frozen=True, kw_only=True)
class BatchCost:
    """How long a batch takes: o + c n + s m + q n^2, times drift and noise, plus a pause.

    n tuples are kept, m scanned. The drift 1 + warm_up exp(-t / warm_up_s) is the JVM getting
    faster; noise is lognormal with mean 1; pauses (garbage collection, the host) come at random
    while a batch runs.
    """

    fixed_s: float = 0.245  # o
    kept_s: float = 1e-3  # c
    scanned_s: float = 0.0  # s
    curvature_s: float = 0.0  # q
    noise: float = 0.0  # standard deviation of the logarithm
    pause_s: float = 0.0  # mean length of a pause (exponential)
    pauses_per_s: float = 0.0
    warm_up: float = 0.0
    warm_up_s: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            require(value >= 0.0, f"{name} of a micro-batch", value, "zero or above")
        require(self.fixed_s + self.kept_s > 0.0, "cost of a micro-batch", 0.0, "above zero")
        require(self.warm_up_s > 0.0, "warm_up_s of a micro-batch", self.warm_up_s, "above zero")

    def duration_s(
        self, kept: int, scanned: int, time_s: float, factor: float, rng: np.random.Generator
    ) -> float:
        """One batch that starts at `time_s`; always draws the same amount of random numbers."""
        work_s = self.kept_s * kept + self.scanned_s * scanned + self.curvature_s * kept**2
        drift = 1.0 + self.warm_up * float(np.exp(-time_s / self.warm_up_s))
        noise = float(np.exp(self.noise * rng.standard_normal() - self.noise**2 / 2.0))
        even_s = (self.fixed_s + factor * work_s) * drift * noise
        chance, length = rng.random(), rng.standard_exponential()
        paused = chance < -np.expm1(-self.pauses_per_s * even_s)
        return even_s + (self.pause_s * length if paused else 0.0)


# Every disturbance switched on. Plausible, not fitted: o is a windowed aggregate's on two cores.
DISTURBED = BatchCost(
    scanned_s=1e-5, curvature_s=5e-8, noise=0.1, pause_s=0.5, pauses_per_s=0.02, warm_up=0.5
)

"""What a shedder answers for some rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Which rows stay, and for each of those 1 / its inclusion probability."""

    mask: npt.NDArray[np.bool]
    weights: npt.NDArray[np.float64]
    kept_from_us: npt.NDArray[np.int64] | None = None  # whole windows: since when none has gone

    @property
    def tuples(self) -> int:
        return len(self.weights)


def alike(mask: npt.NDArray[np.bool], probability: float) -> Kept:
    """All rows had the same chance."""
    kept = int(mask.sum())
    return Kept(mask=mask, weights=np.full(kept, 1.0 / probability if kept else 1.0))

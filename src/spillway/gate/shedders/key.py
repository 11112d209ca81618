"""By key: all tuples of a key stay or all go, and time turns the wheel.

A key's place in [0, 1) is a hash of (key, epoch, seed); keys placed below the limit are kept. In
the next epoch all places are drawn anew, so that no key starves. Two gates with the same seed,
epoch length and limit keep the same keys: that is what a join needs.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.gate.sampling import PPM
from spillway.gate.shedders.hashing import Indexes, key_words, microseconds, salted
from spillway.gate.shedders.hashing import places_ppm as spread
from spillway.gate.shedders.kept import Kept, alike
from spillway.gate.shedders.selection import Selection


def keep(rows: Any, selection: Selection, seed: int) -> Kept:
    mask: npt.NDArray[np.bool] = places(rows, selection, seed) < selection.limit_ppm
    return alike(mask, selection.limit_ppm / PPM)


def places(rows: Any, selection: Selection, seed: int) -> Indexes:
    """Where each row's key stands in its epoch, in parts per million."""
    words = salted(key_words(rows.column(selection.column)), seed)
    if selection.length_us > 0:
        times_us, _ = microseconds(rows.column(selection.time_column))
        words = salted(words ^ (times_us // selection.length_us).astype(np.uint64), seed)
    return spread(words)


class Histogram:
    """How many tuples stand at every place. One pass; then any limit's count is known."""

    def __init__(self, found: Iterable[Indexes]) -> None:
        pieces = [np.empty(0, dtype=np.int64), *found]
        counts = np.bincount(np.concatenate(pieces), minlength=PPM)
        self._up_to = np.concatenate([[0], np.cumsum(counts)])

    def limit_ppm(self, wanted_tuples: float) -> int:
        """The limit that keeps as near to `wanted_tuples` as whole keys allow."""
        if wanted_tuples >= self._up_to[-1]:
            return PPM
        above = int(np.searchsorted(self._up_to, wanted_tuples))
        below = max(0, above - 1)
        gap = self._up_to[above] - wanted_tuples
        return above if gap <= wanted_tuples - self._up_to[below] else below

    def below(self, limit_ppm: int) -> int:
        """Tuples that a limit keeps."""
        return int(self._up_to[limit_ppm])

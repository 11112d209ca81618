"""By key: all tuples of a key stay or all go, and time turns the wheel.

A key's place in [0, 1) is a hash of (key, epoch, seed); keys placed below the limit are kept. In
the next epoch all places are drawn anew, so that no key starves. Two gates with the same seed,
epoch length and limit keep the same keys: that is what a join needs.
"""

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


def limit_ppm(places_ppm: Indexes, wanted_tuples: float) -> int:
    """The largest limit whose keys fit into `wanted_tuples`: one selection pass.

    It is the place of the first key that does not fit: a threshold that would be the same
    wherever the kept keys stood below it, which is what makes 1 / limit an honest weight.
    """
    if wanted_tuples >= len(places_ppm):
        return PPM
    first_out = max(0, int(wanted_tuples))
    return int(np.partition(places_ppm, first_out)[first_out])

"""Whole windows: a tumbling window of event time is kept or gone as a whole.

Its fate is drawn when its first tuple is planned and stands in every later offset, so that what
remains is complete: the query's result is a subset of the true one. Window w is kept when
u(w) < p + owed / size, with u(w) a hash, p the decided share, `owed` the tuples that were decided
but not kept so far, and `size` what a window holds: noise-shaped, so that the load follows the
decision to within about one window, and a window's chance given the past is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.gate.sampling import PPM
from spillway.gate.shedders.hashing import Indexes, microseconds, places_ppm, salted
from spillway.gate.shedders.kept import Kept
from spillway.gate.shedders.selection import Selection

REMEMBERED = 128  # decided windows; what comes still later for older ones is gone


def keep(rows: Any, selection: Selection) -> Kept:
    chances = dict(selection.windows)
    found, null = numbers(rows, selection)
    distinct, inverse = np.unique(found, return_inverse=True)
    chance = np.array([chances.get(int(window), 0) for window in distinct])[inverse]
    mask: npt.NDArray[np.bool] = (chance > 0) & ~null
    return Kept(mask=mask, weights=PPM / chance[mask].astype(np.float64))


def numbers(rows: Any, selection: Selection) -> tuple[Indexes, npt.NDArray[np.bool]]:
    """Each row's window, counted from 1970 as Spark does, and where there is no event time."""
    times_us, null = microseconds(rows.column(selection.column))
    return times_us // selection.length_us, null


def kept_from_us(rows: Any, selection: Selection) -> Indexes:
    """For rows that stay: since when no window has gone, up to their own.

    A longer window of the query that ends in theirs is complete if it begins no earlier.
    """
    found, _ = numbers(rows, selection)
    distinct, inverse = np.unique(found, return_inverse=True)
    stay = {window for window, chance_ppm in selection.windows if chance_ppm > 0}
    first = np.array([_first_of_run(int(window), stay) for window in distinct], dtype=np.int64)
    return first[inverse] * selection.length_us


def _first_of_run(window: int, stay: set[int]) -> int:
    while window - 1 in stay:
        window -= 1
    return window


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """How many tuples of the batch at hand a window holds."""

    window: int
    tuples: int


def decided(selection: Selection, held: Iterable[Held], keep_ppm: int, seed: int) -> Selection:
    """The selection for the next batch: fates of windows that are new, counts of what stays."""
    fates = dict(selection.windows)
    oldest = min(fates) if len(fates) >= REMEMBERED else None
    owed, kept = float(selection.owed_tuples), 0
    ordered = sorted(held, key=lambda h: h.window)
    size = max([selection.window_tuples, *(h.tuples for h in ordered)], default=1)
    for h in ordered:
        if h.window not in fates and (oldest is None or h.window > oldest):
            chance = PPM if keep_ppm == PPM else _chance_ppm(keep_ppm, owed, size)
            fates[h.window] = chance if _lot_ppm(h.window, seed) < chance else 0
        stays = h.tuples if fates.get(h.window, 0) > 0 else 0
        kept += stays
        owed += h.tuples * keep_ppm / PPM - stays
    return replace(
        selection,
        windows=_remembered(fates, ordered),
        window_tuples=_typical(selection, ordered, size),
        kept_tuples=kept,
        owed_tuples=round(max(-2.0 * size, min(2.0 * size, owed))),
    )


def _remembered(fates: dict[int, int], held: list[Held]) -> tuple[tuple[int, int], ...]:
    """The newest fates, and those of all windows that this batch has tuples of."""
    here = {h.window for h in held}
    spare = [window for window in sorted(fates) if window not in here]
    gone = set(spare[: max(0, len(fates) - REMEMBERED)])
    return tuple((window, fates[window]) for window in sorted(fates) if window not in gone)


def _chance_ppm(keep_ppm: int, owed: float, size: int) -> int:
    return max(0, min(PPM, round(keep_ppm + PPM * owed / max(1, size))))


def _lot_ppm(window: int, seed: int) -> int:
    return int(places_ppm(salted(np.array([window], dtype=np.int64).astype(np.uint64), seed))[0])


def _typical(selection: Selection, held: list[Held], size: int) -> int:
    """Follows a growing stream at once and a shrinking one slowly; a window may span batches."""
    if not held:
        return selection.window_tuples
    return max(selection.window_tuples * 15 // 16, size if len(held) > 1 else held[0].tuples, 1)

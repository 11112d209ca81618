"""Sets of positions as sorted intervals [start, stop) that neither overlap nor touch.

A set of a hundred million positions that stand side by side is one row. Nothing here ever lists
the positions of an interval.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Intervals = npt.NDArray[np.int64]  # a row each: start, stop
Positions = npt.NDArray[np.int64]

NOWHERE: Intervals = np.empty((0, 2), dtype=np.int64)


def interval(start: int, stop: int) -> Intervals:
    return np.array([[start, stop]], dtype=np.int64) if start < stop else NOWHERE


def runs(positions: Positions) -> Intervals:
    """The set of these positions, which ascend."""
    if len(positions) == 0:
        return NOWHERE
    breaks = np.flatnonzero(np.diff(positions) != 1)
    starts = positions[np.concatenate(([0], breaks + 1))]
    lasts = positions[np.concatenate((breaks, [len(positions) - 1]))]
    return np.column_stack((starts, lasts + 1))


def union(sets: Iterable[Intervals]) -> Intervals:
    """O(n log n) of the intervals, whatever lies in them."""
    every = np.concatenate([NOWHERE, *sets])
    if len(every) == 0:
        return NOWHERE
    every = every[np.argsort(every[:, 0], kind="stable")]
    reach = np.maximum.accumulate(every[:, 1])
    begins = np.concatenate(([True], every[1:, 0] > reach[:-1]))
    places = np.flatnonzero(begins)
    ends = np.concatenate((places[1:] - 1, [len(every) - 1]))
    return np.column_stack((every[places, 0], reach[ends]))


def size(found: Intervals) -> int:
    """How many positions."""
    return int((found[:, 1] - found[:, 0]).sum())


def holds(found: Intervals, position: int) -> bool:
    place = int(np.searchsorted(found[:, 0], position, side="right")) - 1
    return place >= 0 and position < int(found[place, 1])


def among(positions: Positions, found: Intervals) -> Intervals:
    """Those of these ascending positions that are in the set."""
    cuts = np.searchsorted(positions, found)
    parts = [positions[lower:upper] for lower, upper in cuts]
    return runs(np.concatenate(parts)) if parts else NOWHERE

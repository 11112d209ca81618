"""Columns over time in bounded memory: fine for the last hour, coarser for the last day and weeks.

Every value says how several of it become one: sums are added, peaks kept, states replaced. So a
point of a coarse curve is made of everything that happened in its time, and nothing is left out.
"""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

Merge = Literal["sum", "max", "last"]
Floats = npt.NDArray[np.float64]
TIERS: tuple[tuple[float, int], ...] = ((1.0, 3600), (15.0, 5760), (300.0, 4032))
_NEVER = -1


class Ring:
    """Buckets of one width, the oldest overwritten."""

    def __init__(self, merges: tuple[Merge, ...], width_s: float, size: int) -> None:
        self.width_s, self.size = width_s, size
        self._merges = merges
        self._sums, self._peaks, self._states = (
            np.array([i for i, merge in enumerate(merges) if merge == kind], dtype=np.int64)
            for kind in ("sum", "max", "last")
        )
        self._empty = np.array([0.0 if merge == "sum" else np.nan for merge in merges])
        self._bucket = np.full(size, _NEVER, dtype=np.int64)  # which one a row holds
        self._rows = np.zeros((size, len(merges)))
        self.newest = _NEVER

    def add(self, from_s: float, to_s: float, values: Floats) -> None:
        """Sums are spread evenly over the time; the others stand at its end."""
        last = int(to_s // self.width_s)
        if last <= self.newest - self.size:
            return  # the clock was set back that far
        first = min(last, max(int(from_s // self.width_s), last - self.size + 1))
        buckets = np.arange(first, last + 1)
        begins_s = np.maximum(buckets * self.width_s, from_s)
        spans_s = np.minimum((buckets + 1) * self.width_s, to_s) - begins_s
        total_s = float(spans_s.sum())
        shares = spans_s / total_s if total_s > 0.0 else (buckets == last).astype(float)
        for bucket, share in zip(buckets, shares, strict=True):
            self._merge(int(bucket), float(share), values, is_end=bucket == last)
        self.newest = max(self.newest, last)

    def _merge(self, bucket: int, share: float, values: Floats, *, is_end: bool) -> None:
        at = bucket % self.size
        if self._bucket[at] > bucket:
            return
        if self._bucket[at] < bucket:
            self._bucket[at] = bucket
            self._rows[at] = self._empty
        row = self._rows[at]
        row[self._sums] += share * values[self._sums]
        if is_end:
            row[self._peaks] = np.fmax(row[self._peaks], values[self._peaks])
            state = values[self._states]
            row[self._states] = np.where(np.isnan(state), row[self._states], state)

    def read(
        self, since_s: float, until_s: float, points: int, last_s: float
    ) -> tuple[Floats, Floats]:
        """(the end of each point, its values): NaN where nothing is known.

        Of so many points since then, those of the last `last_s` seconds.
        """
        last = int(until_s // self.width_s)
        first = max(int(since_s // self.width_s), last - self.size + 1)
        per_point = max(1, -(-(last - first + 1) // points))
        first = max(first, int(max(0.0, until_s - last_s) // self.width_s))
        first -= first % per_point  # points stay where they are when the window moves
        count = -(-(last - first + 1) // per_point)
        buckets = first + np.arange(count * per_point)
        held = self._rows[buckets % self.size].copy()
        held[self._bucket[buckets % self.size] != buckets] = np.nan
        ends_s = (first + np.arange(1, count + 1, dtype=np.float64) * per_point) * self.width_s
        if per_point == 1:
            return ends_s, held
        grouped = held.reshape(count, per_point, len(self._merges))
        values = np.column_stack(
            [_merged(grouped[:, :, i], merge) for i, merge in enumerate(self._merges)]
        )
        return ends_s, values


class Series:
    """Named columns, in rings of several widths."""

    def __init__(
        self, merges: Mapping[str, Merge], tiers: tuple[tuple[float, int], ...] = TIERS
    ) -> None:
        self.names = tuple(merges)
        self._rings = [Ring(tuple(merges.values()), width_s, size) for width_s, size in tiers]

    def add(self, from_s: float, to_s: float, values: Mapping[str, float]) -> None:
        row = np.array([values.get(name, np.nan) for name in self.names])
        for ring in self._rings:
            ring.add(from_s, to_s, row)

    def read(
        self, since_s: float, until_s: float, points: int, last_s: float = math.inf
    ) -> tuple[Floats, Mapping[str, Floats]]:
        """From the finest ring that reaches back so far."""
        reach = (r for r in self._rings if r.width_s * (r.size - 1) >= until_s - since_s)
        times_s, values = next(reach, self._rings[-1]).read(since_s, until_s, points, last_s)
        return times_s, {name: values[:, i] for i, name in enumerate(self.names)}


def _merged(values: Floats, merge: Merge) -> Floats:
    known = ~np.isnan(values)
    found = np.full(len(values), np.nan)
    some = known.any(axis=1)
    if merge == "sum":
        found[some] = np.nansum(values[some], axis=1)
    elif merge == "max":
        found[some] = np.nanmax(values[some], axis=1)
    else:
        place = values.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1)
        found[some] = values[some, place[some]]
    return found

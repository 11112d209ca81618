"""Strata: small groups keep more of their tuples, so that none is wiped out.

Power allocation within a block: a group of n tuples is allotted a(n) = t sqrt(n), at least 1 and at
most n, with t such that the allotments add up to the block's share. Where there are more groups
than places, the lower bound falls and chance decides. Allotments are rounded by systematic
sampling (their sum stays exact, their mean is right), and a simple random sample fills them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.gate.shedders.hashing import salted
from spillway.gate.shedders.kept import Kept
from spillway.gate.shedders.shedder import Shedder
from spillway.options import Option

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Strata(Shedder):
    name: ClassVar[str] = "strata"
    options: ClassVar[tuple[Option, ...]] = (
        Option("key", "text", "column whose values make the groups", example="symbol"),
    )

    column: str

    @classmethod
    def asked(cls, options: Mapping[str, str], event_time: str | None) -> "Strata":
        return cls(column=options["key"])

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def keep(self, rows: Any, *, share: int, seed: int, block: int) -> Kept:
        """Exactly `share` rows. Weights are 1 / inclusion probability: n / k in a sure group."""
        group, sizes = _groups(rows.column(self.column))
        count = len(group)
        if share >= count:
            return Kept(mask=np.ones(count, dtype=bool), weights=np.ones(count))
        if share <= 0:
            return Kept(mask=np.zeros(count, dtype=bool), weights=np.empty(0))
        allotted = allotment(sizes, share)
        kept = _rounded(allotted, share, _unit(seed, block))
        lots = salted(np.arange(count, dtype=np.uint64), seed, block)
        order = np.argsort(group.astype(np.uint64) << np.uint64(50) | lots >> np.uint64(14))
        first = np.cumsum(sizes) - sizes
        rank = np.empty(count, dtype=np.int64)
        rank[order] = np.arange(count) - first[group[order]]
        mask = rank < kept[group]
        expected = np.where(allotted >= 1.0, np.maximum(kept, 1), allotted)
        return Kept(mask=mask, weights=(sizes / expected)[group[mask]])


def _groups(column: Any) -> tuple[Counts, Counts]:
    """Each row's group, numbered by first appearance, and how many rows each group has."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    group = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return group, np.bincount(group)


def allotment(sizes: Counts, share: int) -> Floats:
    """Expected kept tuples of each group; they add up to `share`, 0 < share < sum(sizes)."""
    floor = np.ones(len(sizes)) if len(sizes) <= share else np.zeros(len(sizes))
    roots = np.sqrt(sizes)
    low, high = 0.0, float(roots.max())
    for _ in range(60):
        middle = (low + high) / 2.0
        if np.clip(middle * roots, floor, sizes).sum() < share:
            low = middle
        else:
            high = middle
    return np.clip(high * roots, floor, sizes)


def _rounded(allotted: Floats, share: int, start: float) -> Counts:
    """Whole numbers with these means and exactly this sum: cuts of a running total."""
    running = np.cumsum(allotted)
    running *= share / running[-1]
    running[-1] = share
    cuts = np.floor(running + start + 1e-9).astype(np.int64)
    return np.diff(cuts, prepend=0)


def _unit(seed: int, block: int) -> float:
    word = salted(np.array([block & (2**64 - 1)], dtype=np.uint64), seed)
    return float((word >> np.uint64(11)).astype(np.float64)[0]) * 2.0**-53

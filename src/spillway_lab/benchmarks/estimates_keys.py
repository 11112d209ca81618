"""Trials of `estimates` for distinct values: whole keys stay or go, limits change inside a window.

A window of three batches, each with a decision of its own around the keep fraction. What stays is
found by the gate's own planning, debts and all; keys are as skewed as groups are in the other
trials, and most of them occur in several groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.estimates.numbers import Bounded, distinct
from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.gate.shedders.blocks import keep, read_block, spans
from spillway.gate.shedders.key import Key
from spillway.gate.shedders.planned import selected
from spillway.ports import Span

BATCHES = 3
GROUPS = 5
TUPLES = 12_000
SELECTION = Key(column="key")

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """A window's tuples, and how many different keys each group has."""

    key: Places
    group: Places
    truth: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Keyed":
        keys = int(rng.integers(300, 4_000))
        shares = np.arange(1, keys + 1) ** -rng.uniform(0.0, 1.0)
        key = rng.choice(keys, TUPLES, p=shares / shares.sum())
        group = np.minimum(rng.geometric(0.5, TUPLES) - 1, GROUPS - 1)
        pairs = np.unique(np.stack([group, key]), axis=1)
        return cls(
            key=key, group=group, truth=np.bincount(pairs[0], minlength=GROUPS).astype(float)
        )


class _TableLog:
    """Rows that are held in memory."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def read(self, span: Span, wanted: Any) -> Iterator[Any]:
        yield from self._table.slice(span.start, span.tuples).to_batches()


def estimated_keys(
    window: Keyed, fraction: float, seed: int, rng: np.random.Generator, z: float
) -> tuple[Bounded, Places]:
    """Each group's estimate, and how many of its tuples were kept."""
    log: Any = _TableLog(pa.table({"key": window.key}))
    found: list[Places] = []
    weights: list[Floats] = []
    offset = _batch(0, 0, Rule())
    for number in range(BATCHES):
        decided = min(1.0, fraction * rng.uniform(0.6, 1.4))
        planned = _batch(number, TUPLES // BATCHES, Rule(keep_ppm=round(decided * PPM), seed=seed))
        offset = selected(planned, offset, SELECTION, log)
        for span in spans(offset.stretches[0]):
            kept = keep(read_block(log, span), span, offset.rule)
            found.append(span.start + np.flatnonzero(kept.mask))
            weights.append(kept.weights)
    rows = np.concatenate(found)
    group = window.group[rows]
    bounded = distinct(group, GROUPS, window.key[rows], np.concatenate(weights), z)
    return bounded, np.bincount(group, minlength=GROUPS)


def _batch(number: int, tuples: int, rule: Rule) -> Offset:
    start = number * tuples
    stretch = Stretch(partition=0, start=start, read=start, stop=start + tuples)
    return Offset(gate="", began_us=0, seq=number, planned_us=0, stretches=(stretch,), rule=rule)

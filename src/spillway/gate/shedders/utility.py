"""By utility: the least useful tuples of every block go first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spillway.gate.shedders.expressions import columns_of, evaluate
from spillway.gate.shedders.hashing import salted
from spillway.gate.shedders.kept import Kept
from spillway.gate.shedders.shedder import Shedder
from spillway.options import Option


@dataclass(frozen=True, kw_only=True, slots=True)
class Utility(Shedder):
    name: ClassVar[str] = "utility"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "utility",
            "text",
            "expression over columns; the tuples of least value go first",
            example="price * volume",
        ),
    )
    no_sample: ClassVar[str] = (
        "the least useful tuples have no chance to be kept, so nothing speaks for them"
    )

    column: str  # the expression

    @classmethod
    def asked(cls, options: Mapping[str, str], event_time: str | None) -> "Utility":
        columns_of(options["utility"])
        return cls(column=options["utility"])

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.column)

    def keep(self, rows: Any, *, share: int, seed: int, block: int) -> Kept:
        """The `share` most useful rows; a missing value is of no use at all.

        One selection pass finds the threshold u* with fewer than `share` rows above it. Rows above
        are kept, rows below are gone, and of the rows at u* a random part fills up the share. So
        inclusion probabilities are 1, 0 and filled / tied: no estimate can speak for what lies
        below u*.
        """
        values = evaluate(self.column, rows)
        values = np.where(np.isnan(values), -np.inf, values)
        count = len(values)
        if share >= count:
            return Kept(mask=np.ones(count, dtype=bool), weights=np.ones(count))
        if share <= 0:
            return Kept(mask=np.zeros(count, dtype=bool), weights=np.empty(0))
        threshold = np.partition(values, count - share)[count - share]
        mask = values > threshold
        tied = np.flatnonzero(values == threshold)
        missing = share - int(mask.sum())
        lots = salted(tied.astype(np.uint64), seed, block)
        mask[tied[np.argsort(lots, kind="stable")[:missing]]] = True
        weights = np.where(values[mask] > threshold, 1.0, len(tied) / missing)
        return Kept(mask=mask, weights=weights)

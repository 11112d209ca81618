"""By utility: the least useful tuples of every block go first."""

from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.gate.shedders.expressions import evaluate
from spillway.gate.shedders.hashing import salted
from spillway.gate.shedders.kept import Kept


def keep(rows: Any, expression: str, share: int, seed: int, block: int) -> Kept:
    """The `share` most useful rows.

    One selection pass finds the threshold u* with fewer than `share` rows above it. Rows above are
    kept, rows below are gone, and of the rows at u* a random part fills up the share. So inclusion
    probabilities are 1, 0 and filled / tied: no estimate can speak for what lies below u*.
    """
    values = utilities(rows, expression)
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


def utilities(rows: Any, expression: str) -> npt.NDArray[np.float64]:
    """The expression's value for every row; a missing value is of no use at all."""
    values = evaluate(expression, rows)
    return np.where(np.isnan(values), -np.inf, values)

"""Fewer rows: dominated ones go for nothing, others for a stated error.

Row j dominates row k when it asks for no more (all costs <=) and scores no less. What is left is
thinned on a grid when it exceeds the bound: a dropped row then has a kept one that asks for no more
and scores at most `error` less. That is all the proof of the error bound needs, and rows keep their
own rates: nothing is rounded.
"""

from math import prod

import numpy as np

from spillway.cluster.fit.table import Flags, Floats, Indices

_BLOCK = 256
_FINEST = 2.5  # first grid tried: this many times bound^(1/columns) cells per column
_COARSER = 1.15  # from one grid to the next
_COMPARED = 1024  # rows
_MAX_CELLS = 2**20
_EXACT_ROWS = 8  # x bound: above that, several columns are thinned before they are compared


def prune(costs: Floats, scores: Floats, bound: int) -> tuple[Indices, float]:
    """Indices of at most `bound` rows, and the score that this gives up. costs: columns x rows."""
    kept = np.arange(scores.size)
    error = 0.0
    if len(costs) > 1 and scores.size > _EXACT_ROWS * bound:
        kept, error = _thin_cells(costs, scores, 4 * bound)
    kept = kept[undominated(costs[:, kept], scores[kept])]
    if kept.size > bound:
        thin = _thin_scores if len(costs) == 1 else _thin_cells
        chosen, lost = thin(costs[:, kept], scores[kept], bound)
        kept, error = kept[chosen], error + lost
    return kept, error


def undominated(costs: Floats, scores: Floats) -> Indices:
    """Rows that no other row dominates; of equal rows, one."""
    if len(costs) == 1:
        order = np.lexsort((-scores, costs[0]))
        ranked = scores[order]
        best_before = np.concatenate(([-np.inf], np.maximum.accumulate(ranked)[:-1]))
        return order[ranked > best_before]
    return _undominated_columns(costs, scores)


def _undominated_columns(costs: Floats, scores: Floats) -> Indices:
    # A row can only be dominated by one before it in this order, and what a dropped row dominates
    # its own dominator dominates too: comparing with kept rows is enough.
    order = np.lexsort((*costs, -scores))
    kept = order[:0]
    for start in range(0, order.size, _BLOCK):
        block = order[start : start + _BLOCK]
        block = block[~_covered(costs[:, kept], costs[:, block]).any(axis=0)]
        before = np.triu(_covered(costs[:, block], costs[:, block]), 1)
        kept = np.concatenate((kept, block[~before.any(axis=0)]))
    return kept


def _covered(lower: Floats, upper: Floats) -> Flags:
    """[j, k]: lower row j asks for no more than upper row k."""
    covered: Flags = lower[0][:, None] <= upper[0][None, :]
    for low, up in zip(lower[1:], upper[1:], strict=True):
        covered &= low[:, None] <= up[None, :]
    return covered


def _thin_scores(costs: Floats, scores: Floats, bound: int) -> tuple[Indices, float]:
    """One column: the cheapest row of each of `bound` score cells; the loss is below a cell."""
    order = np.argsort(scores, kind="stable")  # undominated, so costs ascend too
    ranked = scores[order]
    step = _round_up(np.array([(ranked[-1] - ranked[0]) / (bound - 1)]))[0]
    cells = np.floor((ranked - ranked[0]) / step)
    first = np.concatenate(([True], cells[1:] > cells[:-1]))
    leaders = np.maximum.accumulate(np.where(first, np.arange(order.size), 0))
    return order[first], float((ranked - ranked[leaders]).max())


def _thin_cells(costs: Floats, scores: Floats, bound: int) -> tuple[Indices, float]:
    """Several columns: the best row of each cell of a grid over the costs.

    A cost c lies in cell ceil(c / width), so all rows one cell lower in every column ask for less,
    and cell 0 holds exact zeros. A row loses its score less the best score there, at most; few
    rows are compared one by one, which states a smaller loss.
    """
    cells, shape = _finest_cells(costs, bound)
    flat = np.ravel_multi_index(tuple(cells), shape)
    order = np.argsort(scores, kind="stable")
    leader = np.full(prod(shape), -1, dtype=np.intp)
    leader[flat[order]] = order  # the last written, hence the best, stays
    leaders = leader[leader >= 0]
    if scores.size <= _COMPARED:
        below = _covered(costs[:, leaders], costs)
        found = np.where(below, scores[leaders][:, None], -np.inf).max(axis=0)
        return leaders, float((scores - found).max())
    best = np.where(leader >= 0, scores[leader], -np.inf).reshape(shape)
    for axis in range(len(shape)):
        best = np.maximum.accumulate(best, axis=axis)
    dropped = np.ones(scores.size, dtype=bool)
    dropped[leaders] = False
    lost = (scores - best[tuple(np.maximum(cells - 1, 0))])[dropped]
    return leaders, max(0.0, float(lost.max(initial=0.0)))


def _finest_cells(costs: Floats, bound: int) -> tuple[Indices, tuple[int, ...]]:
    """The cell of every row, on about the finest grid of which at most `bound` cells are in use."""
    highest = np.where(costs.max(axis=1) > 0, costs.max(axis=1), 1.0)
    per_column = bound ** (1 / len(costs)) * _FINEST
    while True:
        widths = _round_up(highest / max(per_column, 1.0))
        cells = np.ceil(costs / widths[:, None] - 1e-12).astype(np.intp)
        shape = tuple(int(n) + 1 for n in cells.max(axis=1))
        if prod(shape) <= _MAX_CELLS:
            used = np.zeros(prod(shape), dtype=bool)
            used[np.ravel_multi_index(tuple(cells), shape)] = True
            if used.sum() <= bound or per_column <= 1.0:
                return cells, shape
        per_column /= _COARSER


def _round_up(widths: Floats) -> Floats:
    """To one of eight steps per power of two, so that small changes leave the grid in place."""
    mantissas, exponents = np.frexp(widths)
    rounded: Floats = np.ldexp(np.ceil(mantissas * 16) / 16, exponents)
    return rounded

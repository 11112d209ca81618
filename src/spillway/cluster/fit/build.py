"""From the leaves to the roots: generate, map back, merge, remove, propagate (sections 3.2, 3.3).

A node's rows are all combinations of one row of each child's table and one grid point of its own
outputs (a leaf has only the latter). A child's rate r becomes r / selectivity at the path that
feeds it; an input must admit the largest rate that any of its paths wants, and the other paths
drop the surplus in the row's local plan. Combinations above the node's capacity are removed,
dominated ones pruned.

Why the error adds up. Take the optimal plan for some offered rates. Rounding what each leaf gets
down to its grid costs at most that leaf's error; the rounded plan is one of the combinations at
every node above, because smaller rates never break a capacity; so the table has a row that scores
within the sum of the errors below it. Thinning adds what it gave up, and each table states its sum.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from spillway.cluster.fit.decide import Rates, shed_nothing
from spillway.cluster.fit.local import OwnOutputs, own_outputs
from spillway.cluster.fit.prune import prune
from spillway.cluster.fit.spread import Resolution, check_inputs
from spillway.cluster.fit.table import (
    TOLERANCE,
    FeasibleInputTable,
    Flags,
    Floats,
    Indices,
    PublishedTable,
)
from spillway.cluster.fit.topology import Arc, Node, Topology
from spillway.errors import SpillwayError

MAX_FACTOR = 1000  # rows of either side of a merge: at most a million combinations at a time
MAX_LIMITS = 32  # half spaces of the not-overloaded region; more are replaced by a safe one


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Combinations so far: what the inputs must admit, time on paths, score, where from."""

    need: Floats  # inputs x rows
    load: Floats
    score: Floats
    picks: Indices  # tables joined so far x rows

    @property
    def costs(self) -> Floats:
        """What must be low while more tables are to be joined."""
        return np.concatenate((self.need, self.load[None]))

    def take(self, chosen: Indices) -> "_Rows":
        return _Rows(
            need=self.need[:, chosen],
            load=self.load[chosen],
            score=self.score[chosen],
            picks=self.picks[:, chosen],
        )

    def times(self, other: "_Rows") -> "_Rows":
        """Every row with every row of `other`."""
        left = np.repeat(np.arange(self.load.size), other.load.size)
        right = np.tile(np.arange(other.load.size), self.load.size)
        inputs = len(self.need)
        return _Rows(
            need=np.maximum(self.need[:, :, None], other.need[:, None, :]).reshape(inputs, -1),
            load=np.add.outer(self.load, other.load).ravel(),
            score=np.add.outer(self.score, other.score).ravel(),
            picks=np.concatenate((self.picks[:, left], other.picks[:, right])),
        )


def _combined(
    parts: Sequence[_Rows], feasible: Callable[[_Rows], _Rows], bound: int
) -> tuple[_Rows, float]:
    """All feasible combinations of the parts; between merges, thinned to `bound` rows.

    Scores of the node's own outputs are not in yet. They are no reason to keep a row: a higher
    rate, if it pays, comes with a point of their grid, which is the last part.
    """
    rows, error = parts[0], 0.0
    for part in parts[1:]:
        (rows, lost), (factor, also_lost) = (_thinned(r, MAX_FACTOR) for r in (rows, part))
        rows, error = feasible(rows.times(factor)), error + lost + also_lost
        if part is not parts[-1]:
            kept, lost = prune(rows.costs, rows.score, bound)
            rows, error = rows.take(kept), error + lost
    return rows, error


def _thinned(rows: _Rows, bound: int) -> tuple[_Rows, float]:
    if rows.load.size <= bound:
        return rows, 0.0
    kept, lost = prune(rows.costs, rows.score, bound)
    return rows.take(kept), lost


def build_table(
    node: Node,
    children: Mapping[str, PublishedTable],
    resolution: Resolution,
    *,
    peaks: Floats | None = None,
    price: float = 0.0,
) -> FeasibleInputTable:
    """A node's table from its children's.

    `peaks` are the highest rates that its inputs can see: rows above them are useless and left
    out, so that the rows there are lie closer. `price` is score per unit of this node's time.
    """
    check_inputs(node.name, len(node.inputs), resolution.rows)
    ceiling = np.full(len(node.inputs), np.inf) if peaks is None else peaks * (1.0 + TOLERANCE)
    merging = replace(resolution, rows=min(resolution.rows, MAX_FACTOR))
    own = own_outputs(node, merging if node.children else resolution, ceiling)
    parts = [_mapped_back(node, name, children[name], price) for name in node.children]
    if own.columns:
        parts.append(_of_grid(node, own))
    feasible = partial(_feasible, own=own, capacity=float(node.capacity), ceiling=ceiling)
    rows, thinned = _combined([feasible(part) for part in parts], feasible, 2 * resolution.rows)
    rows = _with_own_scores(rows, own, float(node.capacity), price)
    kept, lost = prune(rows.need, rows.score, resolution.rows)
    rows = rows.take(kept)
    rows = rows.take(np.lexsort((*rows.need, -rows.score)))
    return FeasibleInputTable(
        node=node.name,
        inputs=tuple(node.position),
        rates=np.ascontiguousarray(rows.need),
        scores=rows.score,
        flows=_flows(node, children, own, rows, price),
        sources=tuple(node.position[path.source] for path in node.paths),
        limits=_limits(node, children),
        values=_values(node, children),
        error=own.error + sum(children[name].error for name in node.children) + thinned + lost,
    )


def _feasible(rows: _Rows, *, own: OwnOutputs, capacity: float, ceiling: Floats) -> _Rows:
    """Those that the node has time for and that its inputs can see."""
    fits = own.always @ rows.need + rows.load <= capacity * (1.0 + TOLERANCE)
    return rows.take(np.flatnonzero(fits & (rows.need <= ceiling[:, None]).all(axis=0)))


def build_tables(
    topology: Topology,
    resolution: Resolution,
    *,
    peaks: Rates | None = None,
    prices: Mapping[str, float] | None = None,
) -> dict[str, FeasibleInputTable]:
    """The tables of all nodes of a forest, leaves first. `peaks`: of the external inputs."""
    if not topology.is_forest:
        name, parents = next((n, p) for n, p in topology.parents.items() if len(p) > 1)
        raise SpillwayError(
            f"node '{name}' has several parents ({', '.join(p or 'outside' for p in parents)}):"
            " tables coordinate trees; negotiate shares of its capacity first"
        )
    tables: dict[str, FeasibleInputTable] = {}
    highest = peak_rates(topology, peaks)
    for node in reversed(topology.order):
        tables[node.name] = build_table(
            node,
            tables,
            resolution,
            peaks=highest[node.name],
            price=prices.get(node.name, 0.0) if prices else 0.0,
        )
    return tables


def peak_rates(topology: Topology, peaks: Rates | None) -> dict[str, Floats]:
    """The highest rate that each input can see when nothing is shed; infinite when unknown."""
    if peaks is None:
        return {node.name: np.full(len(node.inputs), np.inf) for node in topology.nodes}
    offered = shed_nothing(topology, peaks).offered
    return {
        node.name: np.array([offered[node.name, entry.name] for entry in node.inputs])
        for node in topology.nodes
    }


def _feeds(node: Node, child: str, table: PublishedTable) -> Iterable[tuple[int, int, int]]:
    """Paths into a child: path, column of its input here, column of its input there."""
    for b, path in enumerate(node.paths):
        if isinstance(path.to, Arc) and path.to.node == child:
            yield b, node.position[path.source], table.inputs.index(path.to.input)


def _child_columns(node: Node, child: str, table: PublishedTable) -> list[tuple[int, int, Floats]]:
    """Paths into a child with the rates that its table asks of them, before the path."""
    return [
        (b, column, table.rates[there] / float(node.paths[b].selectivity))
        for b, column, there in _feeds(node, child, table)
    ]


def _mapped_back(node: Node, child: str, table: PublishedTable, price: float) -> _Rows:
    need = np.zeros((len(node.inputs), table.rows))
    load = np.zeros(table.rows)
    for b, column, flow in _child_columns(node, child, table):
        np.maximum(need[column], flow, out=need[column])
        load += float(node.paths[b].cost) * flow
    picks = np.arange(table.rows)[None]
    return _Rows(need=need, load=load, score=table.scores - price * load, picks=picks)


def _of_grid(node: Node, own: OwnOutputs) -> _Rows:
    points = own.grid.shape[1]
    need = np.zeros((len(node.inputs), points))
    need[list(own.columns)] = own.grid
    nothing = np.zeros(points)
    return _Rows(need=need, load=nothing, score=nothing, picks=np.arange(points)[None])


def _with_own_scores(rows: _Rows, own: OwnOutputs, capacity: float, price: float) -> _Rows:
    busy = own.always @ rows.need
    score = rows.score + own.earned @ rows.need - price * busy
    for path, flow in own.fill(rows.need, capacity - rows.load - busy, price):
        score = score + (path.value - price * path.cost) * flow
    return _Rows(need=rows.need, load=rows.load, score=score, picks=rows.picks)


def _flows(
    node: Node, children: Mapping[str, PublishedTable], own: OwnOutputs, rows: _Rows, price: float
) -> Floats:
    flows = np.zeros((len(node.paths), rows.load.size))
    for picks, child in zip(rows.picks, node.children, strict=False):
        for b, _, flow in _child_columns(node, child, children[child]):
            flows[b] = flow[picks]
    for b in own.essential:
        flows[b] = rows.need[node.position[node.paths[b].source]]
    left = float(node.capacity) - rows.load - own.always @ rows.need
    for path, flow in own.fill(rows.need, left, price):
        flows[path.path] = flow
    return flows


def _values(node: Node, children: Mapping[str, PublishedTable]) -> Floats:
    """Score of one tuple of each input when nothing is shed behind it."""
    values = np.zeros(len(node.inputs))
    for path in node.paths:
        if isinstance(path.to, Arc):
            child = children[path.to.node]
            worth = float(child.values[child.inputs.index(path.to.input)])
        else:
            worth = float(path.to.score_weight)
        values[node.position[path.source]] += worth * float(path.selectivity)
    return values


def _limits(node: Node, children: Mapping[str, PublishedTable]) -> Floats:
    """This node's load in full, and the children's half spaces in terms of its inputs."""
    capacity = float(node.capacity)
    load = np.array([float(entry.cost) for entry in node.inputs])
    for path in node.paths:
        load[node.position[path.source]] += float(path.cost)
    own = np.where(load > 0, load / capacity if capacity > 0 else np.inf, 0.0)
    found = [own[None]]
    for child in node.children:
        mapped = np.zeros((len(children[child].limits), len(node.inputs)))
        for b, column, there in _feeds(node, child, children[child]):
            selectivity = float(node.paths[b].selectivity)
            mapped[:, column] += children[child].limits[:, there] * selectivity
        found.append(mapped)
    return implied_removed(np.concatenate(found))


def implied_removed(limits: Floats) -> Floats:
    """Half spaces with larger coefficients imply the others; too many become one safe one."""
    limits = np.unique(limits, axis=0)[::-1]
    larger: Flags = np.asarray((limits[:, None, :] >= limits[None, :, :]).all(axis=2))
    np.fill_diagonal(larger, False)
    limits = limits[~larger.any(axis=0)]
    if len(limits) > MAX_LIMITS:
        overflow = limits[MAX_LIMITS - 1 :].max(axis=0, keepdims=True)
        limits = np.concatenate((limits[: MAX_LIMITS - 1], overflow))
    return limits

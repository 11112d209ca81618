"""Tables filled by linear programmes: the optimum for a few loads around the expected one.

The coordinator solves the programme over the whole topology for each scenario; what a node admits
and sends in it, and the score that comes of that at the outputs behind the node, is a row of the
node's table. A node takes the best mixture of its rows (`mixture`). A mixture asks no more than
the rows do, so no node is overloaded by it; on a tree a child gets just what the mixture of its own
rows takes. Nothing travels but the rows, and the node decides alone, as with the paper's tables.

Where nodes share one behind them, the best for each is too much for that one. There a node does
what the programme does at the loads around what comes: all of them then follow the same answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spillway.cluster.fit.build import implied_removed
from spillway.cluster.fit.decide import Rates, shed_nothing
from spillway.cluster.fit.mixture import Mixture
from spillway.cluster.fit.programme import Programme
from spillway.cluster.fit.table import TOLERANCE, Floats, LocalPlan
from spillway.cluster.fit.topology import Arc, Node, Output, Port, Topology
from spillway.errors import SpillwayError, require

MOST = 1e30  # load of a tuple where there is no capacity for it
FEW = 16  # half spaces of a node before those are removed that others imply
LOWEST, HIGHEST = 0.6, 1.65  # of the expected rates


@dataclass(frozen=True, kw_only=True)
class ScenarioTable:
    """A node's rows, one a scenario, and the region in which nothing has to be shed."""

    node: str
    inputs: tuple[str, ...]
    rates: Floats  # inputs x rows: what is admitted
    flows: Floats  # paths x rows: tuples per second that enter each path
    scores: Floats  # per row, at the outputs behind the node
    sources: tuple[int, ...]  # path -> column of its input
    limits: Floats  # half spaces x inputs: all of limits @ r <= 1 when no node has to shed
    offered: Floats | None = None  # inputs x rows: what comes; where others share nodes behind

    @cached_property
    def mixture(self) -> Mixture:
        """Of what is admitted, what enters the paths, and the score."""
        yields = np.concatenate((self.rates, self.flows, self.scores[None]))
        if self.offered is not None:
            return Mixture.following(self.offered, yields)
        return Mixture(self.rates, self.scores, yields)

    def look_up(self, rates: Sequence[float]) -> LocalPlan:
        """Nothing when not overloaded, else the best mixture of rows."""
        if len(rates) != len(self.inputs):
            raise SpillwayError(
                f"node '{self.node}' got {len(rates)} rates: it has {len(self.inputs)} inputs"
            )
        if (self.limits @ rates).max() <= 1.0 + TOLERANCE:
            ones = (1.0,) * len(self.sources)
            return LocalPlan(input_keep=(1.0,) * len(rates), path_keep=ones, row=None, score=None)
        mixed = self.mixture.of(rates)
        admitted, flows = mixed[: len(rates)], mixed[len(rates) : -1]
        return LocalPlan(
            input_keep=tuple(map(_keep, admitted, rates)),
            path_keep=tuple(
                _keep(flow, admitted[i]) for flow, i in zip(flows, self.sources, strict=True)
            ),
            row=None,
            score=mixed[-1],
        )


def _keep(kept: float, offered: float) -> float:
    return 1.0 if kept >= offered or offered <= 0.0 else max(0.0, kept) / offered


def scenarios(expected: Rates, count: int, rng: np.random.Generator) -> Iterator[dict[Port, float]]:
    """The expected rates, all of them lower and higher, then each by its own factor."""
    require(count >= 1, "number of scenarios", count, "1 or more")
    together = (1.0, LOWEST, HIGHEST)
    low, high = np.log(LOWEST), np.log(HIGHEST)
    for number in range(count):
        factors = (
            np.full(len(expected), together[number])
            if number < len(together)
            else np.exp(rng.uniform(low, high, size=len(expected)))
        )
        yield {port: r * float(f) for (port, r), f in zip(expected.items(), factors, strict=True)}


def scenario_tables(
    topology: Topology, expected: Rates, rng: np.random.Generator, count: int = 24
) -> dict[str, ScenarioTable]:
    """The tables of all nodes with all their rows."""
    *_, tables = growing_tables(topology, expected, rng, count)
    return tables


def growing_tables(
    topology: Topology, expected: Rates, rng: np.random.Generator, count: int = 24
) -> Iterator[dict[str, ScenarioTable]]:
    """Tables of one row at once, then of one row more at a time, for a coordinator that goes on."""
    programme = Programme(topology)
    limits = _limits(topology, expected)
    flows: list[Floats] = []
    loads: list[Mapping[Port, float]] = []
    for rates in scenarios(expected, count, rng):
        flows.append(_tightened(programme, programme.solve(rates)))
        loads.append(rates)
        yield _tables(programme, np.array(flows).T, loads, limits)


def _tightened(programme: Programme, flows: Floats) -> Floats:
    """Nobody sends or admits what is dropped later on, leaves first."""
    flows = flows.copy()
    columns = _path_columns(programme)
    for node in reversed(programme.topology.order):
        wanted = dict.fromkeys(node.position, 0.0)
        for path, column in zip(node.paths, columns[node.name], strict=True):
            if isinstance(path.to, Arc):
                taken = flows[programme.admits[path.to.node, path.to.input]]
                flows[column] = min(flows[column], taken / float(path.selectivity))
            wanted[path.source] = max(wanted[path.source], float(flows[column]))
        for name, most in wanted.items():
            flows[programme.admits[node.name, name]] = most
    return np.maximum(flows, 0.0)


def _path_columns(programme: Programme) -> dict[str, list[int]]:
    columns: dict[str, list[int]] = {}
    for column, (node, _) in enumerate(programme.paths, len(programme.admits)):
        columns.setdefault(node.name, []).append(column)
    return columns


def _tables(
    programme: Programme,
    flows: Floats,
    loads: Sequence[Mapping[Port, float]],
    limits: Mapping[str, Floats],
) -> dict[str, ScenarioTable]:
    """`flows`: variables x rows. A tuple's score is counted behind every input that it passes."""
    columns, contested = _path_columns(programme), _contested(programme.topology)
    offered = _offered(programme, flows, loads)
    behind: dict[Port, Floats] = {}
    tables: dict[str, ScenarioTable] = {}
    for node in reversed(programme.topology.order):
        own = np.zeros(flows.shape[1])
        for entry in node.inputs:
            behind[node.name, entry.name] = np.zeros(flows.shape[1])
        for path, column in zip(node.paths, columns[node.name], strict=True):
            if isinstance(path.to, Output):
                worth = programme.value[column] * flows[column]
            else:
                worth = behind[path.to.node, path.to.input]
            own = own + worth
            behind[node.name, path.source] = behind[node.name, path.source] + worth
        came = np.array([offered[node.name, name] for name in node.position])
        tables[node.name] = ScenarioTable(
            node=node.name,
            inputs=tuple(node.position),
            rates=flows[[programme.admits[node.name, name] for name in node.position]],
            flows=flows[columns[node.name]],
            scores=own,
            sources=tuple(node.position[path.source] for path in node.paths),
            limits=limits[node.name],
            offered=came if node.name in contested else None,
        )
    return tables


def _offered(
    programme: Programme, flows: Floats, loads: Sequence[Mapping[Port, float]]
) -> dict[Port, Floats]:
    """What comes to every input in each scenario."""
    outside = programme.topology.external
    found = {port: np.array([rates[port] for rates in loads]) for port in outside}
    for column, (_, path) in enumerate(programme.paths, len(programme.admits)):
        if isinstance(path.to, Arc):
            found[path.to.node, path.to.input] = flows[column] * float(path.selectivity)
    return found


def _contested(topology: Topology) -> set[str]:
    """Nodes with others beside them in front of a node behind."""
    found: set[str] = set()
    for node in reversed(topology.order):
        if any(len(topology.parents[c]) > 1 or c in found for c in node.children):
            found.add(node.name)
    return found


def _limits(topology: Topology, expected: Rates) -> dict[str, Floats]:
    """Half spaces in which no node behind one is overloaded, its other parents as expected."""
    offered = shed_nothing(topology, expected).offered
    found: dict[str, Floats] = {}
    for node in reversed(topology.order):
        rows = [_own_load(node)[None]]
        for child in node.children:
            rows.append(_of_child(topology.by_name[child], node, found[child], offered))
        limits = np.concatenate(rows)
        found[node.name] = implied_removed(limits) if len(limits) > FEW else limits
    return found


def _own_load(node: Node) -> Floats:
    load = np.array([float(entry.cost) for entry in node.inputs])
    for path in node.paths:
        load[node.position[path.source]] += float(path.cost)
    capacity = float(node.capacity)
    return np.where(load > 0, load / capacity if capacity > 0 else MOST, 0.0)


def _of_child(child: Node, parent: Node, limits: Floats, offered: Mapping[Port, float]) -> Floats:
    """A child's half spaces in terms of a parent's inputs, less what the others send."""
    mine = [
        (parent.position[p.source], child.position[p.to.input], float(p.selectivity))
        for p in parent.paths
        if isinstance(p.to, Arc) and p.to.node == child.name
    ]
    mapped = np.zeros((len(limits), len(parent.inputs)))
    for here, there, selectivity in mine:
        mapped[:, here] += limits[:, there] * selectivity
    if len(mine) == len(child.inputs):
        return mapped
    others = np.array([offered[child.name, name] for name in child.position])
    others[[there for _, there, _ in mine]] = 0.0
    left = 1.0 - limits @ others
    full = np.where(mapped > 0.0, MOST, 0.0)
    return np.where(left[:, None] > 0.0, mapped / np.maximum(left, 1.0 / MOST)[:, None], full)

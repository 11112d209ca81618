"""From what gates have measured to the topology that tables are computed from. Pure.

A query is an input of its node: each tuple costs what its gate has learned. Its results go to the
queries that read them, or to an output. What the fixed price of its batches takes of the node is no
time for tuples. A query that reads several streams is outside the model, as joins are: it counts as
time that is gone, and what it reads as delivered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Port, Topology, exact

LEAST = 1e-6  # of selectivities, costs and capacities: the model knows no zeros
MEMORY_S = 60.0  # costs and selectivities are averaged over so long


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryCost:
    """One query as its node has measured it."""

    query: str
    cost_s: float  # of a tuple
    fixed_cores: float  # what the fixed price of its batches takes when its node is full
    selectivity: float  # results per tuple that its gate kept
    offered_per_s: float
    priority: int = 1
    modelled: bool = True  # it reads one stream

    def towards(self, new: "QueryCost", share: float) -> "QueryCost":
        def mixed(old: float, now: float) -> float:
            return old + share * (now - old)

        return replace(
            new,
            cost_s=mixed(self.cost_s, new.cost_s),
            fixed_cores=mixed(self.fixed_cores, new.fixed_cores),
            selectivity=mixed(self.selectivity, new.selectivity),
            offered_per_s=mixed(self.offered_per_s, new.offered_per_s),
        )


class Averages:
    """Over a minute; rates over less, because tables are for those that there are now."""

    def __init__(self) -> None:
        self.of: dict[str, QueryCost] = {}
        self._read_s: dict[str, float] = {}

    def read(self, costs: Iterable[QueryCost], now_s: float) -> None:
        for cost in costs:
            before = self.of.get(cost.query)
            elapsed_s = now_s - self._read_s.get(cost.query, now_s)
            share = min(1.0, elapsed_s / MEMORY_S)
            known = cost if before is None else before.towards(cost, share)
            self.of[cost.query] = replace(known, offered_per_s=cost.offered_per_s)
            self._read_s[cost.query] = now_s

    def keep_only(self, queries: Iterable[str]) -> None:
        for gone in set(self.of) - set(queries):
            del self.of[gone], self._read_s[gone]


@dataclass(frozen=True, kw_only=True)
class Network:
    """What runs where, and which query reads whose results."""

    node_of: Mapping[str, str]
    slots: Mapping[str, float]  # by node: batches side by side
    readers: Mapping[str, tuple[str, ...]]  # of a query's results

    @property
    def spans_nodes(self) -> bool:
        return any(
            self.node_of.get(name) != self.node_of.get(reader)
            for name, readers in self.readers.items()
            for reader in readers
        )


def topology_of(network: Network, costs: Mapping[str, QueryCost]) -> Topology:
    """Raises SpillwayError where nodes feed each other in a circle."""
    ranks = {p: rank for rank, p in enumerate(sorted({c.priority for c in costs.values()}))}
    on: dict[str, list[QueryCost]] = {}
    for name, cost in costs.items():
        on.setdefault(network.node_of[name], []).append(cost)
    nodes = []
    for node, all_costs in sorted(on.items()):
        found = [cost for cost in all_costs if cost.modelled]
        if not found:
            continue
        paths = [path for cost in found for path in _paths(cost, network, costs, ranks)]
        gone = sum(c.fixed_cores for c in found)
        gone += sum(c.fixed_cores + c.cost_s * c.offered_per_s for c in all_costs if not c.modelled)
        nodes.append(
            Node(
                name=node,
                inputs=tuple(Input(name=c.query, cost=_exact(c.cost_s)) for c in found),
                paths=tuple(paths),
                capacity=_exact(network.slots[node] - gone),
            )
        )
    return Topology(tuple(nodes))


def rates_of(topology: Topology, costs: Mapping[str, QueryCost]) -> dict[Port, float]:
    """What comes from outside."""
    return {port: costs[port[1]].offered_per_s for port in topology.external}


def moved(old: Mapping[str, QueryCost], new: Mapping[str, QueryCost]) -> float:
    """The largest relative change of what a table is made from, rates apart."""
    if set(old) != set(new):
        return float("inf")
    pairs = [
        pair
        for name, was in old.items()
        for pair in (
            (was.cost_s, new[name].cost_s),
            (was.selectivity, new[name].selectivity),
            (1.0 - was.fixed_cores, 1.0 - new[name].fixed_cores),
        )
    ]
    return max((abs(b - a) / max(abs(a), LEAST) for a, b in pairs), default=0.0)


def _paths(
    cost: QueryCost,
    network: Network,
    costs: Mapping[str, QueryCost],
    ranks: Mapping[int, int],
) -> Iterable[Path]:
    """To every reader; a query that nobody reads delivers."""
    selectivity = _exact(cost.selectivity)
    readers = [
        name
        for name in network.readers.get(cost.query, ())
        if name in costs and costs[name].modelled
    ]
    for reader in readers:
        to = Arc(node=network.node_of[reader], input=reader)
        yield Path(source=cost.query, cost=exact(0), to=to, selectivity=selectivity)
    if not readers:
        output = Output(query=cost.query, priority=ranks[cost.priority])
        yield Path(source=cost.query, cost=exact(0), to=output, selectivity=selectivity)


def _exact(value: float) -> Fraction:
    return exact(float(f"{max(LEAST, value):.4g}"))

"""Fair instead of most: max-min fractions, and Jain's index to report either.

Max-min fairness raises the delivered fraction of all queries together until a node is full, leaves
the queries that use this node where they are, and goes on with the rest (progressive filling). A
stream is shared before it splits, so a path carries the largest fraction that any query behind it
gets. While queries rise together every path that serves one of them carries the same fraction t,
so a node is full at t = (capacity - time for settled paths) / time of rising paths at full rate,
in closed form. A node needs its own load and, from its children, which queries still rise: one
number up and one number down per round, at most one round per node.
"""

from collections.abc import Iterable, Mapping
from math import inf

from spillway.cluster.fit.decide import Rates, shed_nothing
from spillway.cluster.fit.topology import Node, Output, Topology

_SMALL = 1e-12


def jain_index(fractions: Iterable[float]) -> float:
    """(sum x)^2 / (n sum x^2): 1 when all get the same, 1/n when one gets everything."""
    values = list(fractions)
    squares = sum(x * x for x in values)
    return 1.0 if squares == 0 else sum(values) ** 2 / (len(values) * squares)


def delivered_fractions(
    topology: Topology, rates: Rates, delivered: Mapping[str, float]
) -> dict[str, float]:
    """Per query: delivered / what it would deliver without any shedding."""
    full = shed_nothing(topology, rates).delivered
    return {query: delivered[query] / full[query] for query in full if full[query] > 0}


def max_min_fractions(topology: Topology, rates: Rates) -> dict[str, float]:
    """The max-min fair fraction of every query."""
    loads = _Loads(topology, rates)
    fractions: dict[str, float] = {}
    while rising := loads.queries - set(fractions):
        level, full = loads.next_full(rising, fractions)
        stopped = rising if level >= 1.0 else loads.using(full) & rising
        for query in stopped:
            fractions[query] = min(1.0, level)
    return fractions


class _Loads:
    """Every piece of work of a topology: its node, its time at full rate, the queries behind it."""

    def __init__(self, topology: Topology, rates: Rates) -> None:
        offered = shed_nothing(topology, rates).offered
        self.capacity = {node.name: float(node.capacity) for node in topology.nodes}
        self.queries = {output.query for output in topology.outputs}
        self.pieces: list[tuple[str, float, frozenset[str]]] = []
        behind: dict[tuple[str, str], frozenset[str]] = {}
        for node in reversed(topology.order):
            self._add(node, offered, behind)

    def _add(
        self, node: Node, offered: Rates, behind: dict[tuple[str, str], frozenset[str]]
    ) -> None:
        for entry in node.inputs:
            port = (node.name, entry.name)
            behind[port] = frozenset()
            for path in (p for p in node.paths if p.source == entry.name):
                to = path.to
                served = (
                    frozenset((to.query,)) if isinstance(to, Output) else behind[to.node, to.input]
                )
                behind[port] |= served
                self.pieces.append((node.name, float(path.cost) * offered[port], served))
            self.pieces.append((node.name, float(entry.cost) * offered[port], behind[port]))

    def next_full(self, rising: set[str], settled: Mapping[str, float]) -> tuple[float, set[str]]:
        """The fraction at which the next nodes are full, and these nodes."""
        left = dict(self.capacity)
        active = dict.fromkeys(self.capacity, 0.0)
        for node, time, queries in self.pieces:
            if queries & rising:
                active[node] += time
            else:
                left[node] -= time * max(settled[query] for query in queries)
        levels = {n: max(0.0, left[n]) / active[n] if active[n] > 0 else inf for n in active}
        lowest = min(levels.values())
        return lowest, {n for n, level in levels.items() if level <= lowest * (1 + _SMALL)}

    def using(self, nodes: set[str]) -> set[str]:
        """Queries whose rise would add time to one of these nodes."""
        pieces = (queries for node, time, queries in self.pieces if node in nodes and time > 0)
        return set().union(*pieces)

"""Loads as they will be once everything under way has arrived, and where a query would fit.

Kept in columns, one for each node, so that a question about all nodes is one pass over arrays.
Cores have rows: now, then what was asked for lately (`recent`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.coordinator.recent import Floats
from spillway.cluster.scaling.demand import demand_cores
from spillway.cluster.views import ClusterView, OperatorView, QueryView

Closed = npt.NDArray[np.bool]  # by node

EPS = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A destination and why it: cores saved there by sharing operators."""

    node: str
    shared_cores: float
    displaces: bool = False  # it has room only at the cost of lower priorities


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A move that was counted: which operators left the source, which are new to the other."""

    query: QueryView
    source: str
    destination: str
    left: list[OperatorView]
    joined: list[OperatorView]


class Room:
    """One decision's picture of the cluster, kept up to date while the decision is being made."""

    def __init__(self, view: ClusterView, memory: Memory) -> None:
        self._view = view
        self._hosts = {host.name: i for i, host in enumerate(view.running)}
        self.names = list(self._hosts)
        names, demand = list(view.operators), demand_cores(view)
        now = np.array([demand.get(n, op.use.cpu_cores) for n, op in view.operators.items()])
        self._cores = memory.recent.add(view.time_s, names, now, memory.hold_s)
        self._column = dict(zip(names, range(len(names)), strict=True))
        self._now = dict(zip(names, now.tolist(), strict=True))
        self._sharers = {n: set(op.queries) for n, op in view.operators.items() if op.shared}
        self._queries = {query.name: query for query in view.queries}
        self.capacity = np.array([host.capacity.cpu_cores for host in view.running])
        self._count_all(view)
        self.entitled = _cumulative_shares(view.queries)
        for name, move in memory.moves.items():
            if name in self._queries and self._queries[name].operators:
                self.take(self._queries[name], move.source, move.destination)

    def _count_all(self, view: ClusterView) -> None:
        nodes, hosts = len(view.running), view.running
        at = np.array([self._hosts.get(view.host_of[name], nodes) for name in self._column])

        def per_node(values: Any) -> Floats:
            counted: Floats = np.bincount(at, values, nodes + 1)[:nodes].astype(np.float64)
            return counted

        at = at.astype(np.int64)
        self.use = np.array([per_node(row) for row in self._cores])
        uses = [op.use for op in view.operators.values()]
        capacities = [host.capacity for host in hosts]
        self._memory_left = np.array([c.memory_mb for c in capacities], dtype=np.float64)
        self._memory_left -= per_node([use.memory_mb for use in uses])
        self._network_left = np.array([c.network_mb_per_s for c in capacities], float)
        self._network_left -= per_node([use.network_mb_per_s for use in uses])
        priority = np.array([self._priority(op) for op in view.operators.values()])
        levels = {query.priority for query in view.queries}
        self._at_least = {p: per_node(self._cores[0] * (priority >= p)) for p in levels}
        self._with: dict[str, set[int]] = {}  # signature -> nodes that run it
        for i, host in enumerate(hosts):
            for op in host.operators:
                if op.signature is not None:
                    self._with.setdefault(op.signature, set()).add(i)

    def _priority(self, op: OperatorView) -> int:
        """A shared operator counts for the most important query that uses it."""
        known = [self._queries[q].priority for q in op.queries if q in self._queries]
        return max(known) if known else 0

    def closed(self, emptying: Iterable[str], above: float = float("inf")) -> Closed:
        """Nodes that take nothing in: those being emptied, and those that are too full."""
        closed: Closed = self.use[0] > above * self.capacity
        closed[[self._hosts[node] for node in emptying if node in self._hosts]] = True
        return closed

    @property
    def loads(self) -> dict[str, float]:
        return dict(zip(self.names, (self.use[0] / self.capacity).tolist(), strict=True))

    def load(self, node: str) -> float:
        i = self._hosts[node]
        return float(self.use[0, i] / self.capacity[i])

    def at_least_cores(self, node: str, priority: int) -> float:
        """What this priority and those above want on a node."""
        return float(self._at_least[priority][self._hosts[node]])

    def queries_on(self, node: str) -> list[QueryView]:
        names = self._view.host(node).query_names
        return [self._queries[name] for name in names if name in self._queries]

    def own_parts(self, query: QueryView, node: str) -> list[OperatorView]:
        """The query's operators on a node."""
        on_node = self._view.host_of
        return [self._view.operators[name] for name in query.operators if on_node.get(name) == node]

    def shared_parts(self, query: QueryView, node: str) -> list[OperatorView]:
        """Those of them that other queries use too, after the moves decided so far."""
        return [op for op in self.own_parts(query, node) if self.users(op) > 1]

    def users(self, op: OperatorView) -> int:
        return len(self._sharers[op.name]) if op.name in self._sharers else 1

    def stateful(self, query: QueryView, node: str) -> bool:
        return any(op.stateful for op in self.own_parts(query, node))

    def relief_cores(self, query: QueryView, node: str) -> float:
        """What leaves with the query: shared parts stay for the others."""
        parts = self.own_parts(query, node)
        return float(sum(self._now[op.name] for op in parts if self.users(op) <= 1))

    def whole_cores(self, query: QueryView, node: str) -> float:
        """What the query needs on a node where it shares nothing."""
        return float(sum(self._now[op.name] for op in self.own_parts(query, node)))

    def best_place(
        self,
        query: QueryView,
        source: str,
        closed: Closed,
        fill_to: float,
        recent: bool = True,
        displace: bool = False,
    ) -> Place | None:
        """Where priorities keep apart, then most to share, then the fullest with room, by name.

        `recent`: there is room only if there was lately. An empty node has room for any query.
        """
        parts, rows = self.own_parts(query, source), slice(None) if recent else slice(0, 1)
        use = self._at_least[query.priority][None] if displace else self.use[rows]
        own = self._sum(op for op in parts if op.signature is None)[rows]
        free = fill_to * self.capacity - use[0]
        open_ = ~closed & ((free >= own[0] - EPS) | (self.use[0] <= EPS))
        if source in self._hosts:
            open_[self._hosts[source]] = False
        found = np.flatnonzero(open_)
        if not found.size:
            return None
        new = np.array([self._new(parts, node) for node in found.tolist()], dtype=np.float64)
        columns = [self._column[op.name] for op in parts]
        cores = self._cores[rows][:, columns] @ new.T
        left = (fill_to * self.capacity[found] - use[:, found] - cores).min(axis=0)
        memory_mb = new @ np.array([op.use.memory_mb for op in parts])
        network = new @ np.array([op.use.network_mb_per_s for op in parts])
        fits = (left >= -EPS) | (self.use[0, found] <= EPS)
        fits &= (memory_mb <= self._memory_left[found]) & (network <= self._network_left[found])
        if not fits.any():
            return None
        crowding = self._crowding(query.priority, found, cores[0])
        order = np.lexsort((found, left, cores[0].round(9), crowding.round(9)))
        best = next(i for i in order.tolist() if fits[i])
        saved = self.whole_cores(query, source) - float(cores[0, best])
        return Place(node=self.names[found[best]], shared_cores=saved, displaces=displace)

    def _new(self, parts: list[OperatorView], node: int) -> list[bool]:
        """Which of the operators a node does not run yet."""
        return [node not in self._with.get(op.signature or "", ()) for op in parts]

    def _crowding(self, priority: int, nodes: npt.NDArray[np.int64], more: Floats) -> Floats:
        """Cores by which this priority and those above would exceed their part of a node.

        A node full of important queries has nobody to shed in their place.
        """
        entitled = self.entitled[priority] * self.capacity[nodes]
        return np.maximum(0.0, self._at_least[priority][nodes] + more - entitled)

    def take(self, query: QueryView, source: str, destination: str) -> Taken:
        """From here on the query counts at its destination. The answer takes it back."""
        left, joined = [], []
        to = self._hosts.get(destination)
        for op in self.own_parts(query, source):
            if op.name in self._sharers:
                self._sharers[op.name].discard(query.name)
            if not self._sharers.get(op.name):
                left.append(op)
            if to is not None and self._new([op], to)[0]:
                joined.append(op)
                if op.signature is not None:
                    self._with.setdefault(op.signature, set()).add(to)
        taken = Taken(query=query, source=source, destination=destination, left=left, joined=joined)
        self._count(taken, 1.0)
        return taken

    def take_back(self, taken: Taken) -> None:
        """Undo the latest `take`."""
        for op in self.own_parts(taken.query, taken.source):
            if op.name in self._sharers:
                self._sharers[op.name].add(taken.query.name)
        for op in taken.joined:
            if op.signature is not None:
                self._with[op.signature].discard(self._hosts[taken.destination])
        self._count(taken, -1.0)

    def _count(self, taken: Taken, sign: float) -> None:
        sides = ((taken.source, taken.left, -sign), (taken.destination, taken.joined, sign))
        for node, ops, change in sides:
            i = self._hosts.get(node)
            if i is None:
                continue
            cores = self._sum(ops) * change
            self.use[:, i] += cores
            self._memory_left[i] -= change * sum(op.use.memory_mb for op in ops)
            self._network_left[i] -= change * sum(op.use.network_mb_per_s for op in ops)
            for priority, cumulative in self._at_least.items():
                if priority <= taken.query.priority:
                    cumulative[i] += cores[0]

    def _sum(self, operators: Iterable[OperatorView]) -> Floats:
        columns = [self._column[op.name] for op in operators]
        return np.asarray(self._cores[:, columns].sum(axis=1))


def _cumulative_shares(queries: Iterable[QueryView]) -> dict[int, float]:
    """Priority -> the part of a node that classes of this priority and above own together."""
    classes = {(query.class_name, query.priority) for query in queries}
    weight = sum(priority for _, priority in classes)
    return {
        own: sum(priority for _, priority in classes if priority >= own) / weight
        for _, own in classes
    }

"""Loads as they will be once everything under way has arrived, and where a query would fit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.scaling.demand import demand_cores
from spillway.cluster.views import (
    NOTHING,
    ClusterView,
    HostView,
    OperatorView,
    QueryView,
    Resources,
)


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
        demand = demand_cores(view)
        self._needs = {name: _need(op, demand) for name, op in view.operators.items()}
        self._priority = {query.name: query.priority for query in view.queries}
        self.sharers = {name: set(op.queries) for name, op in view.operators.items()}
        self._hosts = {host.name: host for host in view.running}
        self._use = {
            host.name: sum((self._needs[op.name] for op in host.operators), NOTHING)
            for host in view.running
        }
        self._by_priority = {host.name: self._cores_by_priority(host) for host in view.running}
        self._entitled = _cumulative_shares(view.queries)
        self._signatures: dict[str, set[str]] = {
            host.name: set(host.signatures) for host in view.running
        }
        for name, move in memory.moves.items():
            if name in self._priority and view.query(name).operators:
                self.take(view.query(name), move.source, move.destination)

    def load(self, node: str) -> float:
        return self._use[node].cpu_cores / self._hosts[node].capacity.cpu_cores

    @property
    def loads(self) -> dict[str, float]:
        return {node: self.load(node) for node in self._hosts}

    def queries_on(self, node: str) -> list[QueryView]:
        names = self._hosts[node].query_names
        return [self._view.query(name) for name in names]

    def own_parts(self, query: QueryView, node: str) -> list[OperatorView]:
        """The query's operators on a node."""
        on_node = self._view.host_of
        return [self._view.operators[name] for name in query.operators if on_node.get(name) == node]

    def shared_parts(self, query: QueryView, node: str) -> list[OperatorView]:
        """Those of them that other queries use too, after the moves decided so far."""
        return [op for op in self.own_parts(query, node) if len(self.sharers[op.name]) > 1]

    def stateful(self, query: QueryView, node: str) -> bool:
        return any(op.stateful for op in self.own_parts(query, node))

    def relief_cores(self, query: QueryView, node: str) -> float:
        """What leaves with the query: shared parts stay for the others."""
        return self._cores(
            op for op in self.own_parts(query, node) if len(self.sharers[op.name]) <= 1
        )

    def best_place(
        self,
        query: QueryView,
        source: str,
        closed: set[str],
        fill_to: float,
        displace: bool = False,
    ) -> Place | None:
        """Where priorities keep apart, then most to share, then the fullest with room, by name."""
        parts = self.own_parts(query, source)
        against = query.priority if displace else None
        found: list[tuple[float, float, float, str]] = []
        for node in self._hosts:
            if node == source or node in closed:
                continue
            new = [op for op in parts if op.signature not in self._signatures[node]]
            left_cores = self._left_cores(node, new, fill_to, against)
            if left_cores is not None:
                crowding = self._crowding(node, query.priority, self._cores(new))
                found.append((crowding, self._cores(new), left_cores, node))
        if not found:
            return None
        _, new_cores, _, node = min(found)
        saved = self._cores(parts) - new_cores
        return Place(node=node, shared_cores=saved, displaces=displace)

    def _crowding(self, node: str, priority: int, more_cores: float) -> float:
        """Cores by which this priority and those above would exceed their part of the node.

        A node full of important queries has nobody to shed in their place.
        """
        cores = self._cores_at_least(node, priority) + more_cores
        entitled = self._entitled[priority] * self._hosts[node].capacity.cpu_cores
        return max(0.0, cores - entitled)

    def _left_cores(
        self, node: str, new: list[OperatorView], fill_to: float, displacing: int | None
    ) -> float | None:
        """Cores left below `fill_to` with these operators on top; None when they do not fit.

        Only CPU can be taken from lower priorities: their memory stays where it is.
        """
        capacity, use = self._hosts[node].capacity, self._use[node]
        taken = use.cpu_cores if displacing is None else self._cores_at_least(node, displacing)
        left = fill_to * capacity.cpu_cores - taken - self._cores(new)
        if left < -1e-9:  # first, because it decides most of the time
            return None
        needs = [self._needs[op.name] for op in new]
        memory_mb = use.memory_mb + sum(need.memory_mb for need in needs)
        network = use.network_mb_per_s + sum(need.network_mb_per_s for need in needs)
        fits = memory_mb <= capacity.memory_mb and network <= capacity.network_mb_per_s
        return left if fits else None

    def take(self, query: QueryView, source: str, destination: str) -> Taken:
        """From here on the query counts at its destination. The answer takes it back."""
        left, joined = [], []
        for op in self.own_parts(query, source):
            self.sharers[op.name].discard(query.name)
            if source in self._use and not self.sharers[op.name]:
                self._use[source] = self._use[source] - self._needs[op.name]
                left.append(op)
            if destination in self._use and op.signature not in self._signatures[destination]:
                self._use[destination] = self._use[destination] + self._needs[op.name]
                joined.append(op)
        known = (op.signature for op in joined if op.signature is not None)
        self._signatures.get(destination, set()).update(known)
        self._count(query.priority, source, -self._cores(left))
        self._count(query.priority, destination, self._cores(joined))
        return Taken(query=query, source=source, destination=destination, left=left, joined=joined)

    def take_back(self, taken: Taken) -> None:
        """Undo the latest `take`."""
        for op in self.own_parts(taken.query, taken.source):
            self.sharers[op.name].add(taken.query.name)
        for op in taken.left:
            self._use[taken.source] = self._use[taken.source] + self._needs[op.name]
        for op in taken.joined:
            self._use[taken.destination] = self._use[taken.destination] - self._needs[op.name]
            if op.signature is not None:
                self._signatures[taken.destination].discard(op.signature)
        self._count(taken.query.priority, taken.source, self._cores(taken.left))
        self._count(taken.query.priority, taken.destination, -self._cores(taken.joined))

    def _cores(self, operators: Iterable[OperatorView]) -> float:
        return sum(self._needs[op.name].cpu_cores for op in operators)

    def _cores_at_least(self, node: str, priority: int) -> float:
        """What operators of this priority and above want on a node."""
        return sum(cores for p, cores in self._by_priority[node].items() if p >= priority)

    def _count(self, priority: int, node: str, cores: float) -> None:
        if node in self._by_priority:
            counted = self._by_priority[node]
            counted[priority] = counted.get(priority, 0.0) + cores

    def _cores_by_priority(self, host: HostView) -> dict[int, float]:
        """A shared operator counts for the most important query that uses it."""
        cores: dict[int, float] = {}
        for op in host.operators:
            priority = max((self._priority.get(q, 0) for q in op.queries), default=0)
            cores[priority] = cores.get(priority, 0.0) + self._needs[op.name].cpu_cores
        return cores


def _cumulative_shares(queries: Iterable[QueryView]) -> dict[int, float]:
    """Priority -> the part of a node that classes of this priority and above own together."""
    classes = {(query.class_name, query.priority) for query in queries}
    weight = sum(priority for _, priority in classes)
    return {
        own: sum(priority for _, priority in classes if priority >= own) / weight
        for _, own in classes
    }


def _need(operator: OperatorView, demand: Mapping[str, float]) -> Resources:
    """What an operator wants: its use, with the CPU that a full node may hide."""
    return Resources(
        cpu_cores=demand.get(operator.name, operator.use.cpu_cores),
        memory_mb=operator.use.memory_mb,
        network_mb_per_s=operator.use.network_mb_per_s,
    )

"""Where a query goes that has no node, pure: to the one with most room, by what the queries want.

A query that never ran waits until the nodes that were asked for are there, or the first one would
get them all. One whose node is gone does not wait: a node that sheds is better than none.
"""

from collections.abc import Mapping

from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.messages import Assignment, NodeOrder

USUAL_CORES = 0.1  # of a query, while none has been measured


class Placing:
    """Keeps count of what it has placed, so that it can be asked for one query after another."""

    def __init__(
        self,
        now: Standing,
        orders: Mapping[str, NodeOrder],
        queries: Mapping[str, Assignment],
        cores: Mapping[str, float],
        fewest: int,
    ) -> None:
        self._cores = cores
        self._usual = sum(cores.values()) / len(cores) if cores else USUAL_CORES
        self._open = [n for n in now.reports if now.is_alive(n) and _takes(orders.get(n))]
        known = {n: now.reports[n] for n in self._open}
        self._capacity = {n: r.host.capacity.cpu_cores if r.host else 1.0 for n, r in known.items()}
        held = [(q, g) for q, g in queries.items() if g.node in known or g.to in known]
        self._on = {n: [q for q, g in held if (g.to or g.node) == n] for n in self._open}
        self._is_complete = len(self._open) >= fewest and all(
            (order.life is not None and name in now.reports and now.is_alive(name))
            for name, order in orders.items()
            if order.state == "runs" and not now.is_pinned(name)
        )

    def __call__(self, name: str, given: Assignment) -> str | None:
        """The node, or None where there is none yet. The query counts there from now on."""
        if not self._open or (given.held_back and not self._is_complete):
            return None
        node = min(self._open, key=lambda n: (self._load(n), len(self._on[n]), n))
        for others in self._on.values():
            if name in others:
                others.remove(name)
        self._on[node].append(name)
        return node

    def _load(self, node: str) -> float:
        return sum(self._cores.get(q, self._usual) for q in self._on[node]) / self._capacity[node]


def _takes(order: NodeOrder | None) -> bool:
    return order is None or order.state == "runs"

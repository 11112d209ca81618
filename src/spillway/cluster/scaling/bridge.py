"""Shed and scale together: shedding bridges the time until a node helps, and prices decide.

How long an overload lasts is not known in advance, so this is the ski-rental problem: shedding is
renting, a node is buying. Shed until the tuples shed have cost as much as a node, then start it.
Whatever the load does, that costs at most twice the best decision in hindsight.
"""

from dataclasses import dataclass

from spillway.cluster.actions import ExpectedEffect, Shed
from spillway.cluster.scaling.demand import demand_cores, host_demand
from spillway.cluster.views import ClusterView, HostView
from spillway.errors import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """In one currency, whichever. A node is paid for at least `least_node_s`."""

    per_million_tuples: float
    per_node_hour: float
    least_node_s: float = 600.0

    def __post_init__(self) -> None:
        require(self.per_million_tuples >= 0.0, "price of tuples", self.per_million_tuples, "0 up")
        require(self.per_node_hour >= 0.0, "price of a node hour", self.per_node_hour, "0 up")
        require(self.least_node_s > 0.0, "least paid time, in seconds,", self.least_node_s, "> 0")

    @property
    def node(self) -> float:
        """What one start costs at least."""
        return self.per_node_hour * self.least_node_s / 3600.0

    def shed(self, tuples: float) -> float:
        return self.per_million_tuples * tuples / 1e6


class Bridge:
    """Keeps hosts below `ceiling` by shedding, and saves up for nodes."""

    def __init__(self, prices: Prices, ceiling: float = 0.95) -> None:
        self._prices = prices
        self._ceiling = ceiling
        self._saved = 0.0
        self._last_s: float | None = None
        self._shedding: set[str] = set()

    @property
    def may_start(self) -> int:
        """Nodes that shedding has already cost as much as."""
        if self._prices.node == 0.0:
            return 1_000_000
        return int(self._saved / self._prices.node)

    def started(self, nodes: int) -> None:
        self._saved -= nodes * self._prices.node

    def shed(self, view: ClusterView) -> tuple[Shed, ...]:
        """Keep fractions for hosts that want more than the ceiling, and the end of shedding."""
        elapsed_s = 0.0 if self._last_s is None else view.time_s - self._last_s
        self._last_s = view.time_s
        demand = demand_cores(view)
        asked = host_demand(view, demand)
        self._saved += self._prices.shed(_shed_per_s(view) * elapsed_s)
        actions = [self._judge(host, asked[host.name]) for host in view.running]
        self._shedding &= {host.name for host in view.running}
        return tuple(action for action in actions if action is not None)

    def _judge(self, host: HostView, asked: float) -> Shed | None:
        if asked <= self._ceiling:
            if host.name not in self._shedding:
                return None
            self._shedding.discard(host.name)
            return self._action(host, 1.0, f"demand {asked:.2f} fits again")
        self._shedding.add(host.name)
        reason = f"demand {asked:.2f} above {self._ceiling:g} until capacity arrives"
        return self._action(host, self._ceiling / asked, reason)

    def _action(self, host: HostView, keep: float, reason: str) -> Shed:
        expected = ExpectedEffect(
            quantity="utilisation",
            subject=host.name,
            before=host.utilisation,
            after=min(self._ceiling, host.utilisation),
            within_s=30.0,
        )
        return Shed(node=host.name, keep_fraction=keep, reason=reason, expected=expected)


def _shed_per_s(view: ClusterView) -> float:
    return sum(query.offered_rate_per_s * (1.0 - query.keep_fraction) for query in view.queries)

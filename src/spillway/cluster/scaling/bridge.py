"""Shed and scale together: shedding bridges the time until a node helps, and prices decide.

How long an overload lasts is not known in advance, so this is the ski-rental problem: shedding is
renting, a node is buying. Shed until the tuples shed have cost as much as a node, then start it.
Whatever the load does, that costs at most twice the best decision in hindsight.
"""

from spillway.cluster.actions import ExpectedEffect, Shed
from spillway.cluster.prices import Prices
from spillway.cluster.scaling.demand import demand_cores, host_demand
from spillway.cluster.views import ClusterView, HostView


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
        if self._prices.node() == 0.0:
            return 1_000_000
        return int(self._saved / self._prices.node())

    def started(self, nodes: int) -> None:
        self._saved -= nodes * self._prices.node()

    def shed(self, view: ClusterView) -> tuple[Shed, ...]:
        """Keep fractions for hosts that want more than the ceiling, and the end of shedding."""
        elapsed_s = 0.0 if self._last_s is None else view.time_s - self._last_s
        self._last_s = view.time_s
        demand = demand_cores(view)
        asked = host_demand(view, demand)
        self._saved += self._shed_per_s(view) * elapsed_s
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

    def _shed_per_s(self, view: ClusterView) -> float:
        return sum(
            self._prices.shed(q.offered_rate_per_s * (1.0 - q.keep_fraction), q.class_name)
            for q in view.queries
        )

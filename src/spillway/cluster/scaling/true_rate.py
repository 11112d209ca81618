"""Sizing in one step from true rates (DS2), for a cluster of hosts."""

from collections import deque

from spillway.cluster.placement import empty_bin, first_fit_decreasing
from spillway.cluster.scaling.demand import backlog_s, demand_cores, host_demand
from spillway.cluster.scaling.memory import Streaks
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wishes
from spillway.cluster.views import ClusterView, HostView, OperatorView, Resources

SETTLED = 2  # measurements averaged for the size
CATCH_UP_S = 120.0  # within which a host should work off what waits on it
MARGIN = 1.1  # hosts are given up only if so much more demand would still fit into fewer


class TrueRate:
    """Knows what is wanted, not only what is used: one decision fits the cluster to the load.

    Demand of an operator = offered rate at its source x selectivities on the way / true rate. A
    host is overloaded when the demand on it exceeds the upper threshold, or leaves too little room
    to work off its backlog within two minutes; all such hosts are relieved at once, by the whole
    excess, however far beyond saturation it is. When the demand, with a margin, packs into fewer
    hosts, the idlest surplus hosts are released at once.

    Decides after n measurements in a row that agree, on the mean of the last two: the first one
    after a step may still contain load of before. Exact when rates hold still; a drifting load is
    followed in as many steps as it leaves the band.
    """

    def __init__(self, settings: ScalingSettings) -> None:
        self._settings = settings
        self._streaks = Streaks()
        self._recent: deque[dict[str, float]] = deque(maxlen=SETTLED)
        self._quiet_until_s = 0.0

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        demand = self._smoothed(demand_cores(view))
        asked = host_demand(view, demand)
        crowded = [host.name for host in view.running if self._is_crowded(host, asked[host.name])]
        surplus = 0 if crowded else len(view.running) - self._hosts_for(view, demand)
        high = self._streaks.count("high", bool(crowded))
        low = self._streaks.count("low", surplus > 0)
        busy = bool(view.starting) or any(query.migrating for query in view.queries)
        if busy or view.time_s < self._quiet_until_s:
            return Wishes()
        if high >= self._settings.consecutive:
            return self._act(view, self._relieve(crowded, asked, demand))
        if low >= self._settings.consecutive:
            return self._act(view, self._release(surplus, asked, demand))
        return Wishes()

    def _is_crowded(self, host: HostView, asked: float) -> bool:
        room = max(0.0, 1.0 - asked)
        stuck = asked > self._settings.target and backlog_s(host) > CATCH_UP_S * room
        return asked > self._settings.upper or stuck

    def _act(self, view: ClusterView, wishes: Wishes) -> Wishes:
        self._quiet_until_s = view.time_s + self._settings.grace_s
        return wishes

    def _smoothed(self, demand: dict[str, float]) -> dict[str, float]:
        self._recent.append(demand)
        return {
            name: sum(one.get(name, now) for one in self._recent) / len(self._recent)
            for name, now in demand.items()
        }

    def _relieve(
        self, crowded: list[str], asked: dict[str, float], demand: dict[str, float]
    ) -> Wishes:
        wishes = tuple(
            Relieve(
                host=name,
                to_utilisation=self._settings.target,
                reason=f"demand is {asked[name]:.2f} of the host, with what waits too much for it",
            )
            for name in crowded
        )
        return Wishes(wishes=wishes, demand_cores=demand)

    def _release(self, surplus: int, asked: dict[str, float], demand: dict[str, float]) -> Wishes:
        idlest = sorted(asked, key=lambda name: asked[name])[:surplus]
        needed = len(asked) - surplus
        wishes = tuple(
            Release(host=name, reason=f"the demand fits into {needed} hosts") for name in idlest
        )
        return Wishes(wishes=wishes, demand_cores=demand)

    def _hosts_for(self, view: ClusterView, demand: dict[str, float]) -> int:
        """Hosts that first fit decreasing needs for the demand and a margin."""
        capacity = view.running[0].capacity if view.running else Resources()
        one_less = (len(view.running) - 1) * capacity.cpu_cores * self._settings.target
        if sum(demand.values()) * MARGIN > one_less:
            return len(view.running)
        operators = [
            OperatorView(
                name=name,
                queries=(),
                use=Resources(cpu_cores=min(cpu * MARGIN, capacity.cpu_cores)),
            )
            for name, cpu in demand.items()
        ]
        bins = [
            empty_bin(str(number), capacity, self._settings.target)
            for number in range(len(view.running))
        ]
        placement = first_fit_decreasing(operators, bins, {})
        if placement.unplaced:
            return len(view.running)
        used = len(set(placement.assigned.values()))
        return max(used, self._settings.min_hosts)

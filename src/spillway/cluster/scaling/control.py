"""A feedback controller for the number of hosts: the paper's future work."""

from spillway.cluster.scaling.demand import demand_cores
from spillway.cluster.scaling.memory import Grace
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wish, Wishes
from spillway.cluster.views import ClusterView, HostView

DEAD_BAND_HOSTS = 0.75  # a wish for less than this many hosts more or fewer is noise


class Control:
    """Integral control of the average utilisation, by the number of hosts n.

    The plant: utilisation u = D / n for a demand of D cores. The law, in increments:

        n(k+1) = n(k) + (1 - pole) * n(k) * (u(k) - target) / target

    Around the target this is the linear system n(k+1) - n* = pole * (n(k) - n*), n* = D / target:
    stable for 0 <= pole < 1, deadbeat at 0, slower and quieter towards 1. The state n is a real
    number clamped to what the cluster may have (no wind-up); hosts are added or released when it
    leaves a dead band around the whole number in use. Single hosts above the upper threshold are
    relieved in between: an average says nothing about them. Measured utilisation saturates at 1,
    so a large step takes several decisions.
    """

    def __init__(self, settings: ScalingSettings, pole: float = 0.6) -> None:
        self._settings = settings
        self._pole = pole
        self._wanted: float | None = None
        self._grace = Grace(settings.grace_s)

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        self._grace.observe(view)
        if not view.running:
            return Wishes()
        wanted = self._integrate(view)
        free = [h for h in view.running if not self._grace.holds(h.name, view.time_s)]
        by_load = sorted(free, key=lambda host: host.utilisation)
        error = wanted - len(view.hosts)
        if error > DEAD_BAND_HOSTS:
            wishes = self._grow(by_load, wanted)
        elif error < -DEAD_BAND_HOSTS and not view.starting:
            wishes = self._shrink(by_load, wanted, int(-error + 0.25))
        else:
            wishes = self._even_out(by_load)
        for wish in wishes:
            self._grace.start(wish.host, view.time_s)
        # What leaves a host is measured by what is wanted of it: by what it uses, a saturated host
        # would keep most of its excess, and be relieved again and again.
        demand = demand_cores(view) if wishes else {}
        return Wishes(wishes=tuple(wishes), demand_cores=demand)

    def _integrate(self, view: ClusterView) -> float:
        settings, hosts = self._settings, len(view.running)
        mean = sum(host.utilisation for host in view.running) / hosts
        before = float(hosts) if self._wanted is None else self._wanted
        # The error is taken at the real number of hosts; the state moves a part of the way to it.
        ideal = hosts * mean / settings.target
        wanted = before + (1.0 - self._pole) * (ideal - before)
        self._wanted = min(max(wanted, settings.min_hosts), settings.max_hosts)
        return self._wanted

    def _grow(self, by_load: list[HostView], wanted: float) -> list[Wish]:
        """All hosts above the target give off their excess: the new hosts take it."""
        target = self._settings.target
        reason = f"controller wants {wanted:.1f} hosts"
        return [
            Relieve(host=host.name, to_utilisation=target, reason=reason)
            for host in by_load
            if host.utilisation > target
        ]

    def _shrink(self, by_load: list[HostView], wanted: float, count: int) -> list[Wish]:
        reason = f"controller wants {wanted:.1f} hosts"
        return [Release(host=host.name, reason=reason) for host in by_load[:count]]

    def _even_out(self, by_load: list[HostView]) -> list[Wish]:
        settings = self._settings
        return [
            Relieve(
                host=host.name,
                to_utilisation=settings.target,
                reason=f"utilisation {host.utilisation:.2f} above {settings.upper:g}",
            )
            for host in by_load
            if host.utilisation > settings.upper
        ]

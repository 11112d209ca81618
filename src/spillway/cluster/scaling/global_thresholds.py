"""The average host against one upper and one lower threshold (FUGU, section IV-B)."""

from spillway.cluster.scaling.memory import Streaks
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wishes
from spillway.cluster.views import ClusterView


class GlobalThresholds:
    """Average above `upper`: every host above the target is relieved down to it. Average below
    `lower`: the host with the least load is released.

    n measurements in a row and a grace period as for local thresholds, but for the whole system.
    Blind to one overloaded host among idle ones: that is its known weakness.
    """

    def __init__(self, settings: ScalingSettings) -> None:
        self._settings = settings
        self._streaks = Streaks()
        self._quiet_until_s = 0.0

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        if not view.running:
            return Wishes()
        settings = self._settings
        mean = sum(host.utilisation for host in view.running) / len(view.running)
        high = self._streaks.count("high", mean > settings.upper)
        low = self._streaks.count("low", mean < settings.lower)
        if view.time_s < self._quiet_until_s or max(high, low) < settings.consecutive:
            return Wishes()
        self._streaks.reset("high")
        self._streaks.reset("low")
        self._quiet_until_s = view.time_s + settings.grace_s
        return self._relieve(view, mean) if high else self._release(view, mean)

    def _relieve(self, view: ClusterView, mean: float) -> Wishes:
        settings = self._settings
        reason = f"average utilisation {mean:.2f} above {settings.upper:g}"
        return Wishes(
            wishes=tuple(
                Relieve(host=host.name, to_utilisation=settings.target, reason=reason)
                for host in view.running
                if host.utilisation > settings.target
            )
        )

    def _release(self, view: ClusterView, mean: float) -> Wishes:
        idlest = min(view.running, key=lambda host: host.utilisation)
        reason = f"average utilisation {mean:.2f} below {self._settings.lower:g}, this host least"
        return Wishes(wishes=(Release(host=idlest.name, reason=reason),))

"""Every host against an upper and a lower threshold of its own (FUGU, section IV-A)."""

from spillway.cluster.scaling.memory import Grace, Streaks
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wish, Wishes
from spillway.cluster.views import ClusterView, HostView


class LocalThresholds:
    """Overloaded above `upper`, underloaded below `lower`, for n measurements in a row.

    An overloaded host is relieved down to the target; an underloaded one is released. A host that
    was just changed is not touched during its grace period.
    """

    def __init__(self, settings: ScalingSettings) -> None:
        self._settings = settings
        self._grace = Grace(settings.grace_s)
        self._high = Streaks()
        self._low = Streaks()

    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        self._grace.observe(view)
        found = (self._judge(host, view.time_s) for host in view.running)
        return Wishes(wishes=tuple(wish for wish in found if wish is not None))

    def _judge(self, host: HostView, now_s: float) -> Wish | None:
        settings = self._settings
        high = self._high.count(host.name, host.utilisation > settings.upper)
        low = self._low.count(host.name, host.utilisation < settings.lower)
        if self._grace.holds(host.name, now_s) or max(high, low) < settings.consecutive:
            return None
        self._high.reset(host.name)
        self._low.reset(host.name)
        self._grace.start(host.name, now_s)
        if high >= settings.consecutive:
            reason = f"utilisation {host.utilisation:.2f} above {settings.upper:g}, {high} in a row"
            return Relieve(host=host.name, to_utilisation=settings.target, reason=reason)
        reason = f"utilisation {host.utilisation:.2f} below {settings.lower:g}, {low} in a row"
        return Release(host=host.name, reason=reason)

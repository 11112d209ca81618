"""One tick of scaling: check what was expected, ask the policy, plan, record."""

from spillway.cluster.actions import ClusterAction, StartNode
from spillway.cluster.scaling.bridge import Bridge
from spillway.cluster.scaling.expectations import Expectations
from spillway.cluster.scaling.plan import Plan, plan
from spillway.cluster.scaling.policy import Relieve, ScalingPolicy, ScalingSettings, Wishes
from spillway.cluster.views import ClusterView


class Scaler:
    """A policy, the planner behind it and the memory of what came of its actions.

    With `learn_from_failure` a relief that did not help is not tried again on that host until its
    utilisation has changed; the paper's policies run without it. With a `bridge`, overload is
    shed while nodes start, and a node is started only once shedding has cost as much.
    """

    def __init__(
        self,
        policy: ScalingPolicy,
        settings: ScalingSettings,
        *,
        learn_from_failure: bool = False,
        bridge: Bridge | None = None,
    ) -> None:
        self.expectations = Expectations()
        self._policy = policy
        self._settings = settings
        self._learn_from_failure = learn_from_failure
        self._bridge = bridge
        self._refused: frozenset[str] = frozenset()

    def tick(self, view: ClusterView, most_hosts: int | None = None) -> tuple[ClusterAction, ...]:
        """`most_hosts`: what can be had now, where that is less than what is allowed."""
        self.expectations.check(view)
        wishes = self._policy.decide(view, self._refused)
        if self._learn_from_failure:
            wishes = self._without_unhelpful(wishes, view)
        shedding = self._bridge.shed(view) if self._bridge else ()
        most = self._settings.max_hosts if most_hosts is None else most_hosts
        planned = self._plan(wishes, view, max(0, most - len(view.hosts)))
        self._refused = frozenset(planned.refused)
        self.expectations.record(planned.actions, view.time_s)
        return planned.actions + shedding

    def _plan(self, wishes: Wishes, view: ClusterView, free_nodes: int) -> Plan:
        if self._bridge is None:
            return plan(wishes, view, self._settings, free_nodes)
        planned = plan(wishes, view, self._settings, min(free_nodes, self._bridge.may_start))
        self._bridge.started(sum(isinstance(action, StartNode) for action in planned.actions))
        return planned

    def _without_unhelpful(self, wishes: Wishes, view: ClusterView) -> Wishes:
        kept = tuple(
            wish
            for wish in wishes.wishes
            if not isinstance(wish, Relieve)
            or not self.expectations.unhelpful(wish.host, view.host(wish.host).utilisation)
        )
        return Wishes(wishes=kept, demand_cores=wishes.demand_cores)

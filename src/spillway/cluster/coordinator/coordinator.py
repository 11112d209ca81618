"""ARMaDILoS: the coordinator of a cluster of nodes that each run their own DILoS (thesis 7.1).

Reports in, actions out. First the passive step (what became of earlier actions), then the active
one: quotas that make priorities global, relief of overloaded nodes, release of idle ones. No clock
and no I/O: time is the reports' time, so a replayed sequence of reports gives the same actions.
"""

from spillway.cluster.actions import SetQuota
from spillway.cluster.coordinator.directive import CoordinatorSettings, Directive
from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.coordinator.quotas import global_quotas
from spillway.cluster.coordinator.release import empty_idle, stop_empty
from spillway.cluster.coordinator.relief import relieve
from spillway.cluster.coordinator.round import Round
from spillway.cluster.views import ClusterView


class Coordinator:
    """Sees all nodes; moves queries, starts and stops nodes, sets the classes' quotas.

    Shedding stays with the nodes: it bridges the time until a move or a new node helps, and is
    what remains when the budget is spent.
    """

    def __init__(self, settings: CoordinatorSettings | None = None) -> None:
        self.settings = settings or CoordinatorSettings()
        self._memory = Memory(self.settings)

    def decide(self, view: ClusterView) -> Directive:
        """One round of reports."""
        noticed = self._memory.sync(view)
        now = Round(view, self._memory, self.settings)
        self._memory.count(now.room.loads)
        stop_empty(now)
        relieve(now)
        empty_idle(now)
        _set_quotas(now)
        for action in now.actions:
            self._memory.expect(action, view.time_s)
        return Directive(actions=tuple(now.actions), withheld=tuple(now.withheld), noticed=noticed)


def _set_quotas(now: Round) -> None:
    """Only where a node is nearly full: elsewhere its class scheduler lends what is spare.

    All quotas of a node change together or not at all, so that they keep summing to 1.
    """
    quotas = global_quotas(now.view, above=now.settings.upper)
    for host in now.view.sharing:
        changes = [(c, quotas.get((host.name, c.name), c.quota)) for c in host.classes]
        if all(abs(new - c.quota) < now.settings.quota_step for c, new in changes):
            continue
        for c, new in changes:
            action = SetQuota(
                node=host.name,
                class_name=c.name,
                quota=new,
                reason=f"{host.name} is full: {c.name} (priority {c.priority}) asks {c.load:.2f}"
                f" there and owns {new:.2f} by its share of the cluster",
                expected=now.effect("quota", f"{host.name}/{c.name}", c.quota, new),
            )
            now.ask(action, f"{host.name}/{c.name}")

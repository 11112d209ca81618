"""A cluster on paper: queries of one operator each, placed by hand, moved by actions."""

from dataclasses import replace

from spillway.cluster.actions import MoveQuery, StartNode, StopNode
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings, Directive
from spillway.cluster.views import (
    ClassView,
    ClusterView,
    HostView,
    OperatorView,
    QueryView,
    Resources,
)

ONE = Resources(cpu_cores=1.0, memory_mb=1000.0, network_mb_per_s=100.0)
QUICK = CoordinatorSettings(patience_reports=2, idle_reports=2, cooldown_s=100.0, max_nodes=4)


class Cluster:
    def __init__(self, *nodes: str) -> None:
        self.nodes = dict.fromkeys(nodes, "running")
        self.queries: dict[str, QueryView] = {}
        self.operators: dict[str, tuple[str, OperatorView]] = {}
        self.classes: dict[str, tuple[ClassView, ...]] = {}
        self.time_s = 0.0

    def add(
        self,
        name: str,
        node: str,
        cores: float,
        priority: int = 1,
        state_mb: float = 0.0,
        signature: str | None = None,
    ) -> "Cluster":
        operator = OperatorView(
            name=f"{name}.op",
            queries=(name,),
            use=Resources(cpu_cores=min(cores, 1.0)),
            state_mb=state_mb,
            true_rate_per_s=1000.0,
            signature=signature,
        )
        self.operators[operator.name] = (node, operator)
        self.queries[name] = QueryView(
            name=name,
            class_name=f"class-{priority}",
            priority=priority,
            operators=(operator.name,),
            offered_rate_per_s=1000.0 * cores,
        )
        return self

    def share(self, name: str, node: str, cores: float, *queries: str) -> "Cluster":
        """One more operator, in front, that several queries use."""
        operator = OperatorView(
            name=name,
            queries=queries,
            use=Resources(cpu_cores=cores),
            true_rate_per_s=1000.0 * self.queries[queries[0]].offered_rate_per_s / 1000.0 / cores,
            signature=name,
        )
        self.operators[name] = (node, operator)
        for query in queries:
            old = self.queries[query]
            self.queries[query] = replace(old, operators=(name, *old.operators))
        return self

    def view(self) -> ClusterView:
        self.time_s += 10.0
        hosts = tuple(
            HostView(
                name=node,
                capacity=ONE,
                operators=tuple(op for at, op in self.operators.values() if at == node),
                classes=self.classes.get(node, ()),
                state=state,  # type: ignore[arg-type]
            )
            for node, state in self.nodes.items()
        )
        queries = tuple(self.queries.values())
        return ClusterView(time_s=self.time_s, hosts=hosts, queries=queries, host_template=ONE)

    def obey(self, directive: Directive) -> None:
        for action in directive.actions:
            if isinstance(action, StartNode):
                self.nodes[action.node] = "running"
            elif isinstance(action, StopNode):
                del self.nodes[action.node]
            elif isinstance(action, MoveQuery):
                for name in self.queries[action.query].operators:
                    if name.startswith(f"{action.query}."):
                        self.operators[name] = (action.destination, self.operators[name][1])


def run(cluster: Cluster, coordinator: Coordinator, rounds: int) -> list[Directive]:
    directives = []
    for _ in range(rounds):
        directives.append(coordinator.decide(cluster.view()))
        cluster.obey(directives[-1])
    return directives


def moves(directives: list[Directive]) -> list[MoveQuery]:
    return [a for d in directives for a in d.actions if isinstance(a, MoveQuery)]

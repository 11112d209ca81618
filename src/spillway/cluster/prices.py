"""What shedding and nodes cost, in one currency, whichever."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.cluster.scaling.demand import demand_cores
from spillway.cluster.views import ClusterView
from spillway.errors import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """A node is paid for at least `least_node_s`. `by_class`: per million tuples, where it differs.

    The coordinator pays for a node as long as it holds it (`hold_s`), and ignores `least_node_s`.
    """

    per_million_tuples: float
    per_node_hour: float
    least_node_s: float = 600.0
    by_class: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tuples = (self.per_million_tuples, *self.by_class.values())
        require(min(tuples) >= 0.0, "prices of tuples", tuples, "0 up")
        require(self.per_node_hour >= 0.0, "price of a node hour", self.per_node_hour, "0 up")
        require(self.least_node_s > 0.0, "least paid time, in seconds,", self.least_node_s, "> 0")

    def node(self, seconds: float | None = None) -> float:
        """A node for so long; what one start costs at least, when not told."""
        held_s = self.least_node_s if seconds is None else seconds
        return self.per_node_hour * held_s / 3600.0

    def shed(self, tuples: float, class_name: str = "") -> float:
        return self.by_class.get(class_name, self.per_million_tuples) * tuples / 1e6

    def shed_per_s(self, view: ClusterView, hosts: set[str]) -> float:
        """What is being shed on these hosts, by their classes' reports."""
        classes = (c for host in view.hosts if host.name in hosts for c in host.classes)
        return sum(self.shed(c.shed_tuples_per_s, c.name) for c in classes)

    def worth(self, view: ClusterView) -> float:
        """What an hour's work of a node is worth, in node hours, for the class that sheds first."""
        node = view.host_template or (view.running[0].capacity if view.running else None)
        if node is None or self.per_node_hour == 0.0:
            return float("inf")
        demand = demand_cores(view)
        cores: dict[str, float] = {}
        price: dict[str, float] = {}
        for query in view.queries:
            name = query.class_name
            own = sum(demand.get(op, 0.0) for op in query.operators)
            cores[name] = cores.get(name, 0.0) + own / node.cpu_cores
            lost = self.shed(query.offered_rate_per_s * 3600.0, name)
            price[name] = price.get(name, 0.0) + lost
        found = [price[c] / cores[c] / self.per_node_hour for c in cores if cores[c] > 0.0]
        return min(found, default=0.0)

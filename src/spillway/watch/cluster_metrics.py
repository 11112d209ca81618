"""What a coordinator has for Prometheus: classes and nodes. Tuples are counted by the nodes, each
of which has metrics of its own: two that count the same would be added up."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from spillway.watch.metrics import Labels, controller, gauge, of_classes
from spillway.watch.views import Snapshot

_NODE: Labels = ("node",)


class ClusterMetrics(Collector):
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._snapshot: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        now = self._snapshot
        if now is None or now.cluster is None:
            return
        yield from controller(now)
        yield from of_classes(now)
        nodes = now.cluster.nodes
        loads: dict[Labels, float] = {(node.name,): node.load for node in nodes}
        yield gauge("node_load_ratio", "Wanted of a node over what it has.", _NODE, loads)
        running: dict[Labels, float] = {
            (node.name,): float(node.state == "running") for node in nodes
        }
        yield gauge("node_running", "1 while it takes queries.", _NODE, running)
        text = "Of a node's last report."
        ages: dict[Labels, float] = {
            (node.name,): node.heard_s for node in nodes if node.heard_s is not None
        }
        yield gauge("node_report_age_seconds", text, _NODE, ages)
        text = "Queries on their way from one node to another."
        yield gauge("moves", text, (), {(): float(len(now.cluster.moves))})
        placed: dict[Labels, float] = {
            (query.name, query.class_name): float(query.node is not None) for query in now.queries
        }
        text = "1 while a node has it."
        yield gauge("query_placed", text, ("query", "class"), placed)

"""One day of the cluster under one combination of shedding and scaling."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spillway.cluster.actions import ClusterAction, SetQuota
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.report import Progress
from spillway_lab.experiments.armadilos.classes import CLASS_NAMES, CLASSES
from spillway_lab.experiments.armadilos.cluster import Cluster
from spillway_lab.experiments.armadilos.reports import Reporter
from spillway_lab.experiments.armadilos.workload import Day

NODES = 200
REPORT_S = 120.0
SAMPLE_S = 300.0
SETTINGS = CoordinatorSettings(patience_reports=2, idle_reports=5, min_nodes=20, max_nodes=NODES)


@dataclass(frozen=True, kw_only=True)
class Variant:
    name: str
    sheds: bool
    scales: bool
    nodes: int = NODES


NONE = Variant(name="no coordination", sheds=False, scales=False)
SHED = Variant(name="shedding only", sheds=True, scales=False)
SCALE = Variant(name="scaling only", sheds=False, scales=True)
ALL = Variant(name="all together", sheds=True, scales=True)


@dataclass(kw_only=True)
class Outcome:
    """One variant's day. Lists run over the classes, highest priority first."""

    variant: Variant
    queries: list[int]
    shed_tuples: list[float]
    shed_alone: float  # of the highest class, on nodes that it overloads by itself
    violation_query_h: list[float]
    node_h: float
    actions: Mapping[str, int]
    withheld: Mapping[str, int]
    nodes: list[float] = field(default_factory=list)
    shed_per_s: list[float] = field(default_factory=list)
    late_queries: list[float] = field(default_factory=list)

    @property
    def shed(self) -> float:
        return sum(self.shed_tuples)

    @property
    def late_query_h(self) -> float:
        return sum(self.violation_query_h)

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes_at_start": self.variant.nodes,
            "shed_tuples": dict(zip(CLASS_NAMES, self.shed_tuples, strict=True)),
            "violation_query_hours": dict(zip(CLASS_NAMES, self.violation_query_h, strict=True)),
            "node_hours": self.node_h,
            "actions": dict(self.actions),
            "withheld": dict(self.withheld),
        }


def simulate(day: Day, variant: Variant, progress: Progress) -> Outcome:
    cluster = Cluster(day, variant.nodes, variant.sheds)
    reporter, coordinator = Reporter(cluster), Coordinator(SETTINGS)
    actions, withheld = Counter[str](), Counter[str]()
    series: list[tuple[float, float, float]] = []
    report_every, sample_every = round(REPORT_S / day.step_s), round(SAMPLE_S / day.step_s)
    before = (0.0, 0.0)
    for step in range(1, day.steps + 1):
        cluster.step()
        if variant.scales:
            reporter.add(day.rate_per_s[step - 1])
            if step % report_every == 0:
                directive = coordinator.decide(reporter.take())
                wanted = [a for a in directive.actions if _belongs(a, variant)]
                for action in wanted:
                    cluster.actuate(action)
                actions.update(type(a).__name__ for a in wanted)
                withheld.update(w.reason.partition(":")[0] for w in directive.withheld if w.action)
        if step % sample_every == 0:
            now = (float(cluster.shed.sum()), float(cluster.violation_s.sum()))
            shed, late = ((n - b) / SAMPLE_S for n, b in zip(now, before, strict=True))
            series.append((float(cluster.running.sum()), shed, late))
            before = now
            progress(variant.name, step / day.steps)
    nodes, shed_per_s, late_queries = (list(column) for column in zip(*series, strict=True))
    return Outcome(
        variant=variant,
        queries=[int((day.klass == k).sum()) for k in range(len(CLASSES))],
        shed_tuples=_by_class(day, cluster.shed),
        shed_alone=cluster.shed_alone,
        violation_query_h=[s / 3600.0 for s in _by_class(day, cluster.violation_s)],
        node_h=cluster.node_s / 3600.0,
        actions=actions,
        withheld=withheld,
        nodes=nodes,
        shed_per_s=shed_per_s,
        late_queries=late_queries,
    )


def _belongs(action: ClusterAction, variant: Variant) -> bool:
    """Quotas are part of shedding: they say whose tuples go first."""
    return variant.sheds or not isinstance(action, SetQuota)


def _by_class(day: Day, values: np.ndarray[Any, Any]) -> list[float]:
    return [float(values[day.klass == k].sum()) for k in range(len(CLASSES))]

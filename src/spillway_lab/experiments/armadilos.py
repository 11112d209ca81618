"""ARMaDILoS: a simulated day of a 200-node cluster, with and without coordination (thesis ch. 7).

The thesis outlines ARMaDILoS and leaves building it to future work: there are no figures of its
own to meet. The claims checked here are those it makes for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spillway.cluster.actions import ClusterAction, SetQuota
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.report import Progress, Table
from spillway_lab.experiments.armadilos_classes import CLASSES
from spillway_lab.experiments.armadilos_cluster import Cluster
from spillway_lab.experiments.armadilos_reports import Reporter
from spillway_lab.experiments.armadilos_workload import DAY_S, Day, draw_day
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes_at_start": self.variant.nodes,
            "shed_tuples": dict(zip(_names(), self.shed_tuples, strict=True)),
            "violation_query_hours": dict(zip(_names(), self.violation_query_h, strict=True)),
            "node_hours": self.node_h,
            "actions": dict(self.actions),
            "withheld": dict(self.withheld),
        }


def run_day(setup: Setup) -> Report:
    day = draw_day(np.random.default_rng(setup.seed))
    outcomes: list[Outcome] = []
    for number, variant in enumerate((NONE, SHED, SCALE, ALL)):
        outcomes.append(simulate(day, variant, _part(setup.progress, number / 5, 0.2)))
    # The same money without a coordinator: as many nodes, all day, as were used on average.
    same = Variant(
        name="shedding only, same node hours",
        sheds=True,
        scales=False,
        nodes=max(1, round(outcomes[-1].node_h * 3600.0 / DAY_S)),
    )
    outcomes.append(simulate(day, same, _part(setup.progress, 0.8, 0.2)))
    by_name = {o.variant.name: o for o in outcomes}
    return Report(
        experiment="armadilos-day",
        setup=setup,
        results={
            "offered_tuples": day.offered_tuples,
            "queries": day.queries,
            "variants": {name: outcome.as_json() for name, outcome in by_name.items()},
        },
        checks=_checks(by_name, same.name),
        tables=[_table(outcomes, day), _action_table(by_name[ALL.name])],
        pictures={"": lambda: _draw(day, outcomes)},
    )


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


def _names() -> list[str]:
    return [c.name for c in CLASSES]


def _part(progress: Progress, start: float, share: float) -> Progress:
    return lambda what, fraction: progress(what, start + share * fraction)


def _checks(by_name: Mapping[str, Outcome], same_name: str) -> list[Check]:
    none, shed = by_name[NONE.name], by_name[SHED.name]
    together, same = by_name[ALL.name], by_name[same_name]
    late = {o.variant.name: sum(o.violation_query_h) for o in by_name.values()}
    lost = {o.variant.name: sum(o.shed_tuples) for o in by_name.values()}
    return [
        Check(
            name="scaling does not replace shedding (7.0)",
            paper="shedding is still needed for mild, short overload",
            here=f"violations {late[SCALE.name]:.0f} query hours without it,"
            f" {late[ALL.name]:.0f} with it",
            holds=late[ALL.name] < late[SCALE.name],
        ),
        Check(
            name="idle nodes can sleep (8.3.2)",
            paper="nodes are put to sleep when the workload is small",
            here=f"{together.node_h:.0f} of {shed.node_h:.0f} node hours",
            holds=together.node_h < shed.node_h,
        ),
        Check(
            name="coordination sheds less than the same node hours without it",
            paper="maximise total resource usage (7.1)",
            here=f"{lost[ALL.name] / 1e6:.0f} M against {lost[same_name] / 1e6:.0f} M tuples,"
            f" {together.node_h:.0f} against {same.node_h:.0f} node hours",
            holds=lost[ALL.name] < lost[same_name],
        ),
        Check(
            name="coordination violates fewer targets than doing nothing",
            paper="-",
            here=f"{late[ALL.name]:.0f} against {late[NONE.name]:.0f} query hours,"
            f" at {together.node_h / none.node_h:.0%} of the node hours",
            holds=late[ALL.name] < late[NONE.name],
        ),
        Check(
            name="priorities are global",
            paper="global priorities of the classes (7.1)",
            here="thousand tuples shed per query: "
            + ", ".join(
                f"{c.name} {value / 1e3:.0f}"
                for c, value in zip(CLASSES, _per_query(together), strict=True)
            ),
            holds=_per_query(together) == sorted(_per_query(together)),
            note=_concentration(together),
        ),
    ]


def _per_query(outcome: Outcome) -> list[float]:
    """Tuples shed by an average query of each class."""
    return [shed / n for shed, n in zip(outcome.shed_tuples, outcome.queries, strict=True)]


def _concentration(outcome: Outcome) -> str:
    part = outcome.shed_alone / max(1.0, outcome.shed_tuples[0])
    return (
        f"{part:.0%} of what {CLASSES[0].name} sheds falls on nodes where it alone asks for more"
        " than the node has: moving the least important queries first leaves the important ones"
        f" together. The rest falls mainly where quotas, set every {REPORT_S:g} s, lag behind a"
        " burst"
    )


def _table(outcomes: list[Outcome], day: Day) -> Table:
    rows = [
        (
            o.variant.name,
            *(f"{shed / 1e6:.1f}" for shed in o.shed_tuples),
            f"{sum(o.shed_tuples) / day.offered_tuples:.2%}",
            *(f"{hours:.1f}" for hours in o.violation_query_h),
            f"{o.node_h:.0f}",
        )
        for o in outcomes
    ]
    shed = [f"shed {name}, M" for name in _names()]
    late = [f"late {name}, query h" for name in _names()]
    columns = ("variant", *shed, "shed", *late, "node hours")
    return Table(title=f"one day, {day.queries} queries", columns=columns, rows=rows)


def _action_table(outcome: Outcome) -> Table:
    rows = [*outcome.actions.items(), *((f"vetoed: {k}", v) for k, v in outcome.withheld.items())]
    return Table(title="what the coordinator did", columns=("action", "times"), rows=rows)


def _draw(day: Day, outcomes: list[Outcome]) -> Figure:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(9, 8), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    every = round(SAMPLE_S / day.step_s)
    cores = (day.rate_per_s[:, day.stream] * day.cost_s).sum(axis=1)
    cores = cores[: cores.size // every * every].reshape(-1, every).mean(axis=1)
    hours = (np.arange(cores.size) + 1) * SAMPLE_S / 3600.0
    axes[0].fill_between(hours, cores, color="0.85", label="load, cores (parsing aside)")
    for outcome in outcomes:
        label = outcome.variant.name
        axes[0].plot(hours, outcome.nodes, label=label)
        axes[1].plot(hours, np.array(outcome.shed_per_s) / 1000.0, label=label)
        axes[2].plot(hours, outcome.late_queries, label=label)
    axes[0].set_ylabel("nodes running")
    axes[1].set_ylabel("shed, thousand tuples/s")
    axes[2].set_ylabel("queries beyond their target")
    axes[2].set_xlabel("hour of the day")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    for axis in axes:
        axis.set_xlim(0, 24)
        axis.set_xticks(range(0, 25, 3))
        axis.set_ylim(bottom=0)
    return figure


EXPERIMENTS = (
    Experiment(
        name="armadilos-day",
        title="a day of a 200-node cluster: none, shedding, scaling, all together",
        source="DILoS thesis, chapter 7 (outline, no figures)",
        run=run_day,
    ),
)

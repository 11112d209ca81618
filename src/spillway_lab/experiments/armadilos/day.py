"""ARMaDILoS: a simulated day of a 200-node cluster, with and without coordination (thesis ch. 7).

The thesis outlines ARMaDILoS and leaves building it to future work: there are no figures of its
own to meet. The claims checked here are those it makes for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.report import Progress, Table
from spillway_lab.experiments.armadilos.classes import CLASS_NAMES, CLASSES
from spillway_lab.experiments.armadilos.variants import (
    ALL,
    NONE,
    REPORT_S,
    SAMPLE_S,
    SCALE,
    SHED,
    Outcome,
    Variant,
    simulate,
)
from spillway_lab.experiments.armadilos.workload import DAY_S, Day, draw_day
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def _part(progress: Progress, start: float, share: float) -> Progress:
    return lambda what, fraction: progress(what, start + share * fraction)


def _checks(by_name: Mapping[str, Outcome], same_name: str) -> list[Check]:
    none, shed = by_name[NONE.name], by_name[SHED.name]
    scale, together = by_name[SCALE.name], by_name[ALL.name]
    return [
        Check(
            name="scaling does not replace shedding (7.0)",
            paper="shedding is still needed for mild, short overload",
            here=f"violations {scale.late_query_h:.0f} query hours without it,"
            f" {together.late_query_h:.0f} with it",
            holds=together.late_query_h < scale.late_query_h,
        ),
        Check(
            name="idle nodes can sleep (8.3.2)",
            paper="nodes are put to sleep when the workload is small",
            here=f"{together.node_h:.0f} of {shed.node_h:.0f} node hours",
            holds=together.node_h < shed.node_h,
        ),
        _sheds_less(together, by_name[same_name]),
        Check(
            name="coordination violates fewer targets than doing nothing",
            paper="-",
            here=f"{together.late_query_h:.0f} against {none.late_query_h:.0f} query hours,"
            f" at {together.node_h / none.node_h:.0%} of the node hours",
            holds=together.late_query_h < none.late_query_h,
        ),
        _global_priorities(together),
    ]


def _sheds_less(together: Outcome, same: Outcome) -> Check:
    return Check(
        name="coordination sheds less than the same node hours without it",
        paper="maximise total resource usage (7.1)",
        here=f"{together.shed / 1e6:.0f} M against {same.shed / 1e6:.0f} M tuples,"
        f" {together.node_h:.0f} against {same.node_h:.0f} node hours",
        holds=together.shed < same.shed,
    )


def _global_priorities(together: Outcome) -> Check:
    shed = _per_query(together)
    return Check(
        name="priorities are global",
        paper="global priorities of the classes (7.1)",
        here="thousand tuples shed per query: "
        + ", ".join(
            f"{name} {value / 1e3:.0f}" for name, value in zip(CLASS_NAMES, shed, strict=True)
        ),
        holds=shed == sorted(shed),
        note=_concentration(together),
    )


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
            f"{o.shed / day.offered_tuples:.2%}",
            *(f"{hours:.1f}" for hours in o.violation_query_h),
            f"{o.node_h:.0f}",
        )
        for o in outcomes
    ]
    shed = [f"shed {name}, M" for name in CLASS_NAMES]
    late = [f"late {name}, query h" for name in CLASS_NAMES]
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

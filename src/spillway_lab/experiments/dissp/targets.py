"""dissp-targets: the latency controller at four targets (fig. 6)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.experiments.dissp.setting import (
    CONTROLLED_S,
    SOURCE,
    TARGETS_S,
    Found,
    Spec,
    run,
)
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERIES = tuple(range(20, 201, 20))
OVERLOADED_FROM = 120


def targets(setup: Setup, duration_s: float = CONTROLLED_S) -> Report:
    specs = {
        (t, q): Spec(queries=q, target_s=t, seed=setup.seed, duration_s=duration_s)
        for t in TARGETS_S
        for q in QUERIES
    }
    found = run_named(run, specs, setup.progress)
    rows = [
        (
            q,
            *(found[t, q].settled_s for t in TARGETS_S),
            *(found[t, q].kept_tuples for t in TARGETS_S),
        )
        for q in QUERIES
    ]
    columns = ("queries", *(f"latency (s), T = {t:g} s" for t in TARGETS_S))
    columns += tuple(f"kept per period, T = {t:g} s" for t in TARGETS_S)
    return Report(
        experiment="dissp-targets",
        setup=setup,
        results={
            f"{t:g}": {
                f"{q}": found[t, q].outcome.summary()
                | {
                    "latency_s": round(found[t, q].settled_s, 4),
                    "kept_tuples_per_period": round(found[t, q].kept_tuples, 2),
                    "busy": round(found[t, q].busy, 4),
                }
                for q in QUERIES
            }
            for t in TARGETS_S
        },
        checks=_checks(found),
        tables=[Table(title="with the controller (fig. 6)", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(found)},
    )


def _checks(found: Mapping[tuple[float, int], Found]) -> list[Check]:
    overloaded = [q for q in QUERIES if q >= OVERLOADED_FROM]
    checks = []
    for t in TARGETS_S:
        off = max(abs(found[t, q].settled_s - t) / t for q in overloaded)
        checks.append(
            Check(
                name=f"T = {t:g} s: mean latency at the target from 120 queries on",
                paper="at the target value",
                here=f"at most {off:.1%} off",
                holds=off <= 0.15,
                why_not="At the low steps of the staircase 120 queries do not overload the engine:"
                " nothing needs to wait there, so the mean lies below the target.",
            )
        )
    queue = [found[t, 200].outcome.queued_tuples.mean() for t in TARGETS_S]
    checks.append(
        Check(
            name="the larger the target, the more tuples are kept waiting",
            paper="number of tuples kept increases with the target",
            here=", ".join(f"{q:.0f}" for q in queue) + " in the buffer at 200 queries",
            holds=all(a < b for a, b in pairwise(queue)),
        )
    )
    return checks


def _picture(found: Mapping[tuple[float, int], Found]) -> Figure:
    figure, axes = panels(3)
    names = ("mean latency (s)", "processor busy (%)", "kept per period (tuples)")
    for t in TARGETS_S:
        runs = [found[t, q] for q in QUERIES]
        columns = zip(*((f.settled_s, 100.0 * f.busy, f.kept_tuples) for f in runs), strict=True)
        for axis, values in zip(axes, columns, strict=True):
            axis.plot(QUERIES, values, marker="o", label=f"T = {t:g} s")
    for axis, name in zip(axes, names, strict=True):
        axis.legend(fontsize=8, ncols=4)
        label(axis, x="queries", y=name)
    figure.suptitle("Four targets, 20 to 200 queries (dissp paper fig. 6)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dissp-targets",
        title="the latency controller at four targets, 20 to 200 queries",
        source=f"{SOURCE}, fig. 6",
        run=targets,
    ),
)

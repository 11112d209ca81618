"""dissp-uncontrolled: latency without a controller (fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import lines, panels
from spillway.report import Table
from spillway.workloads import curves
from spillway_lab.engine.networks import DISSP_SUSTAINED_QUERIES
from spillway_lab.experiments.dissp.setting import PERIOD_S, SOURCE, Found, Spec, run
from spillway_lab.experiments.outcomes import Floats, numbers
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNCONTROLLED_S = 200.0
QUERIES = (20, 40, 60, 80, 100, 120, 160, 200)
END = 40  # control periods: ten seconds
ROUND = round(curves.DISSP_STEP_S * len(curves.DISSP_STEPS_PER_S) / PERIOD_S)  # of the staircase


def uncontrolled(setup: Setup, duration_s: float = UNCONTROLLED_S) -> Report:
    specs = {
        q: Spec(queries=q, target_s=None, seed=setup.seed, duration_s=duration_s) for q in QUERIES
    }
    runs = run_named(run, specs, setup.progress)
    end_s = {q: float(np.nanmean(f.outcome.delay_s[-40:])) for q, f in runs.items()}
    rows = [(q, f.settled_s, end_s[q], int(f.outcome.queued_tuples[-1])) for q, f in runs.items()]
    columns = ("queries", "mean latency (s)", "at the end (s)", "tuples waiting")
    return Report(
        experiment="dissp-uncontrolled",
        setup=setup,
        results={
            f"{q}": {
                "latency_at_the_end_s": round(end_s[q], 4),
                "queued_tuples": int(f.outcome.queued_tuples[-1]),
                "latency_s": numbers(f.outcome.delay_s[::8]),
            }
            for q, f in runs.items()
        },
        checks=_checks(end_s, {q: growth(f.outcome.delay_s) for q, f in runs.items()}),
        tables=[Table(title="no controller (fig. 5)", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(runs)},
    )


def growth(delay_s: Floats) -> float:
    """Seconds of delay that come to a second of time, between two ends of the staircase (or in the
    second half of a shorter run): the same step, so that only what stays counts."""
    back = min(ROUND, delay_s.size // 2)
    now_s, before_s = delay_s[-END:], delay_s[-END - back : -back]
    return float(np.nanmean(now_s) - np.nanmean(before_s)) / (back * PERIOD_S)


def _checks(end_s: Mapping[int, float], grows: Mapping[int, float]) -> list[Check]:
    highest_s = max(end_s[q] for q in (20, 40, 60, 80))
    above = {q: q / DISSP_SUSTAINED_QUERIES - 1.0 for q in grows if q >= 100}
    least = min(grows[q] / lack for q, lack in above.items())
    return [
        Check(
            name="up to 80 queries the latency stays low",
            paper="low",
            here=f"{highest_s:.2f} s at the end, at most",
            holds=highest_s < 3.0,
        ),
        Check(
            name="from 100 queries on it grows without end",
            paper="increases rapidly until memory runs out",
            here=f"{end_s[100]:.1f} s (100 queries) and {end_s[200]:.1f} s (200) at the end;"
            f" over the last round it still grew {least:.2f} times as fast as work was left over",
            holds=least > 0.5 and end_s[200] > end_s[100],
        ),
    ]


def _picture(runs: Mapping[int, Found]) -> Figure:
    figure, axes = panels(1, height=4.0)
    shown = {f"{q} queries": (f.outcome.time_s, f.outcome.delay_s) for q, f in runs.items()}
    lines(axes[0], shown, y="mean latency (s)", log=True)
    figure.suptitle("No controller (dissp paper fig. 5)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dissp-uncontrolled",
        title="latency without a controller, 20 to 200 queries",
        source=f"{SOURCE}, fig. 5",
        run=uncontrolled,
    ),
)

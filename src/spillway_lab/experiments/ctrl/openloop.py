"""ctrl-openloop: the three ways in which AURORA fails (fig. 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import lines, panels
from spillway.report import Table
from spillway.workloads import curves
from spillway.workloads.curves import RateCurve
from spillway_lab.experiments.ctrl.curve_runs import STEP_AT_S, CurveSpec, run_curve
from spillway_lab.experiments.ctrl.setting import CAPACITY_PER_S, SOURCE, TARGET_S
from spillway_lab.experiments.outcomes import Outcome
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPEN_LOOP_S = 100.0


def open_loop_curves(duration_s: float) -> dict[str, RateCurve]:
    """Fig. 8: a rate that keeps growing; a large step; a step just above the capacity."""
    return {
        "growing rate": curves.ramp(200.0, 3000.0, duration_s),
        "large step": curves.step(200.0, 800.0, STEP_AT_S, duration_s),
        "small step": curves.step(100.0, 1.1 * CAPACITY_PER_S, STEP_AT_S, duration_s),
    }


def openloop(setup: Setup, duration_s: float = OPEN_LOOP_S) -> Report:
    shapes = open_loop_curves(duration_s)
    specs = [
        CurveSpec(law=law, curve=curve, duration_s=duration_s, seed=setup.seed, name=name)
        for name, curve in shapes.items()
        for law in ("aurora", "ctrl")
    ]
    found = iter(run_all(run_curve, specs, setup.progress))
    runs = {name: {law: next(found) for law in ("aurora", "ctrl")} for name in shapes}
    return Report(
        experiment="ctrl-openloop",
        setup=setup,
        results={
            name: {
                law: o.summary() | {"delay_at_the_end_s": round(_end_s(o), 4)}
                for law, o in by.items()
            }
            for name, by in runs.items()
        },
        checks=_checks(runs),
        tables=[_table(runs)],
        pictures={"": lambda: _picture(shapes, runs, duration_s)},
    )


def _end_s(outcome: Outcome) -> float:
    return float(np.nanmean(outcome.delay_s[-5:]))


def _checks(runs: Mapping[str, Mapping[str, Outcome]]) -> list[Check]:
    growing, large, small = (runs[name] for name in ("growing rate", "large step", "small step"))
    late = large["aurora"].delay_s[len(large["aurora"].delay_s) // 2 :]
    lowest_s = float(np.nanmin(late))
    rising = float(np.nanmean(np.diff(growing["aurora"].delay_s[5:])))
    return [
        Check(
            name="growing rate: AURORA's delay grows all the time, CTRL's does not",
            paper="unbounded growth",
            here=f"{rising * 1e3:.0f} ms a period, to {_end_s(growing['aurora']):.1f} s;"
            f" CTRL ends at {_end_s(growing['ctrl']):.2f} s",
            holds=rising > 0.01
            and _end_s(growing["aurora"]) > 1.2 * TARGET_S > _end_s(growing["ctrl"]),
        ),
        Check(
            name="large step: AURORA settles at a wrong delay and stays there, CTRL comes back",
            paper="converges to a value above the target",
            here=f"AURORA stays above {lowest_s:.2f} s, CTRL ends at {_end_s(large['ctrl']):.2f} s",
            holds=lowest_s > 1.2 * TARGET_S
            and abs(_end_s(large["ctrl"]) - TARGET_S) < 0.1 * TARGET_S,
        ),
        Check(
            name="small step: AURORA sheds although the queue is empty, CTRL uses the room first",
            paper="unnecessary loss, delay far below the target",
            here=f"AURORA at {_end_s(small['aurora']):.2f} s loses"
            f" {small['aurora'].loss_ratio:.2%}, CTRL {small['ctrl'].loss_ratio:.2%}",
            holds=_end_s(small["aurora"]) < 0.5 * TARGET_S
            and small["aurora"].loss_ratio > small["ctrl"].loss_ratio,
        ),
    ]


def _table(runs: Mapping[str, Mapping[str, Outcome]]) -> Table:
    rows = [
        (name, law, _end_s(o), o.accumulated_violation_s, o.loss_ratio)
        for name, by_law in runs.items()
        for law, o in by_law.items()
    ]
    columns = ("input", "load manager", "delay at the end (s)", "violation (s)", "loss")
    return Table(title="the three cases of fig. 8", columns=columns, rows=rows)


def _picture(
    shapes: Mapping[str, RateCurve], runs: Mapping[str, Mapping[str, Outcome]], duration_s: float
) -> Figure:
    figure, axes = panels(3, 2)
    times_s = np.linspace(0.0, duration_s, 500)
    for i, (name, curve) in enumerate(shapes.items()):
        rate = {"offered": (times_s, curve.at(times_s))}
        lines(axes[2 * i], rate, y="rate (tuples/s)", title=name)
        axes[2 * i].axhline(CAPACITY_PER_S, color="gray", linestyle=":", label="capacity")
        axes[2 * i].legend(fontsize=8)
        delays = {law: (o.time_s, o.delay_s) for law, o in runs[name].items()}
        lines(axes[2 * i + 1], delays, title="mean delay", target_s=TARGET_S)
    figure.suptitle("How open-loop shedding fails (ctrl paper fig. 8)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="ctrl-openloop",
        title="the three ways in which open-loop shedding (AURORA) fails",
        source=f"{SOURCE}, fig. 8",
        run=openloop,
    ),
)

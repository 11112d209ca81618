"""ctrl-period: CTRL with shorter and longer control periods (fig. 19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.experiments.ctrl.setting import DURATION_S, METRICS, SOURCE, Spec, run
from spillway_lab.experiments.outcomes import ratio
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIODS_S = (0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EXACT_NOTE = (
    "The simulated monitor counts queue and cost exactly, so a short period has no estimation error"
    " to pay for; on a real engine it has."
)


def period(setup: Setup, duration_s: float = DURATION_S) -> Report:
    """Fig. 19: nine control periods, CTRL on web load."""
    specs = {
        p: Spec(law="ctrl", seed=setup.seed, period_s=p, duration_s=duration_s) for p in PERIODS_S
    }
    runs = run_named(run, specs, setup.progress)
    lowest = {m: min(o.summary()[m] for o in runs.values()) for m in METRICS}
    relative = {m: [ratio(o.summary()[m], lowest[m]) for o in runs.values()] for m in METRICS}
    rows = [(p * 1e3, *(o.summary()[m] for m in METRICS)) for p, o in runs.items()]
    columns = ("period (ms)", "violation (s)", "delayed tuples", "overshoot (s)", "loss")
    return Report(
        experiment="ctrl-period",
        setup=setup,
        results={f"{p * 1e3:g}": o.summary() for p, o in runs.items()},
        checks=_checks(relative["accumulated_violation_s"]),
        tables=[Table(title="CTRL on web load by control period", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(relative)},
    )


def _checks(violations: Sequence[float]) -> list[Check]:
    by_period = dict(zip(PERIODS_S, violations, strict=True))
    best = min(by_period, key=lambda p: by_period[p])
    return [
        Check(
            name="the best control period",
            paper="500 ms; best region 250 to 1,000 ms",
            here=f"{best * 1e3:g} ms",
            holds=0.25 <= best <= 1.0,
            why_not=EXACT_NOTE,
        ),
        Check(
            name="violations rise steeply beyond 4 s",
            paper="about 40 times at 4,000 ms",
            here=f"{by_period[4.0]:.1f} times at 4,000 ms, {by_period[8.0]:.1f} at 8,000 ms",
            holds=by_period[8.0] > by_period[4.0] > 3.0,
        ),
        Check(
            name="too short a period is worse than the best one",
            paper="performance degrades",
            here=f"{by_period[PERIODS_S[0]]:.2f} times at 31.25 ms",
            holds=by_period[PERIODS_S[0]] > 1.0,
            why_not=EXACT_NOTE,
        ),
    ]


def _picture(relative: Mapping[str, Sequence[float]]) -> Figure:
    figure, axes = panels(1, height=4.0)
    for metric, values in relative.items():
        axes[0].plot([p * 1e3 for p in PERIODS_S], values, marker="o", label=METRICS[metric])
    axes[0].set_xscale("log")
    axes[0].set_yscale("log")
    axes[0].legend(fontsize=8)
    label(axes[0], x="control period (ms)", y="relative to the lowest")
    figure.suptitle("CTRL under different control periods, web load (ctrl paper fig. 19)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="ctrl-period",
        title="CTRL with control periods from 31 ms to 8 s",
        source=f"{SOURCE}, fig. 19",
        run=period,
    ),
)

"""ctrl-burstiness: CTRL, BASELINE and AURORA under more and less bursty load (fig. 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.experiments.ctrl.setting import (
    DURATION_S,
    METRICS,
    PAPER_LAWS,
    SOURCE,
    Spec,
    run,
)
from spillway_lab.experiments.outcomes import Outcome, ratio
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BIAS_FACTORS = (0.1, 0.25, 0.5, 1.0, 1.25, 1.5)
BURSTS_NOTE = (
    "Here every bias factor has the same mean rate, so burstier also means more overload in the"
    " bursts, for every law: what enters before the first period of a burst is over is the same."
    " AURORA is many times worse at every bias factor (see the table)."
)


def burstiness(setup: Setup, duration_s: float = DURATION_S) -> Report:
    """Fig. 17: bias factors from 0.1 (very bursty) to 1.5."""
    specs = [
        Spec(law=law, trace="pareto", seed=setup.seed, bias=bias, duration_s=duration_s)
        for law in PAPER_LAWS
        for bias in BIAS_FACTORS
    ]
    found = iter(run_all(run, specs, setup.progress))
    runs = {law: {bias: next(found) for bias in BIAS_FACTORS} for law in PAPER_LAWS}
    relative = {
        law: {m: [_to_calmest(by, bias, m) for bias in BIAS_FACTORS] for m in METRICS}
        for law, by in runs.items()
    }
    rows = [
        (law, bias, *(runs[law][bias].summary()[m] for m in METRICS))
        for law in PAPER_LAWS
        for bias in BIAS_FACTORS
    ]
    columns = ("load manager", "bias factor", "violation (s)", "delayed", "overshoot (s)", "loss")
    return Report(
        experiment="ctrl-burstiness",
        setup=setup,
        results={
            law: {f"{bias:g}": o.summary() for bias, o in by.items()} for law, by in runs.items()
        },
        checks=_checks(relative),
        tables=[Table(title="metrics by bias factor", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(relative)},
    )


def _to_calmest(by_bias: Mapping[float, Outcome], bias: float, metric: str) -> float:
    return ratio(by_bias[bias].summary()[metric], by_bias[BIAS_FACTORS[-1]].summary()[metric])


def _checks(relative: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Check]:
    overshoots = {law: _swing(by["max_overshoot_s"]) for law, by in relative.items()}
    violations = {law: _swing(by["accumulated_violation_s"]) for law, by in relative.items()}
    return [
        _steadier("overshoot changes", overshoots),
        _steadier("violations change", violations),
        Check(
            name="BASELINE is not significantly affected by the bias factor either",
            paper="not significantly (data not shown)",
            here=f"violations by a factor of {violations['baseline']:.2f}",
            holds=violations["baseline"] <= 2.0 * violations["ctrl"],
        ),
    ]


def _steadier(what: str, swing: Mapping[str, float]) -> Check:
    return Check(
        name=f"{what} less with burstiness under CTRL than under AURORA",
        paper="very little difference in CTRL, dramatic in AURORA",
        here=f"by a factor of {swing['ctrl']:.2f} under CTRL, {swing['aurora']:.2f} under AURORA",
        holds=swing["ctrl"] < swing["aurora"],
        why_not=BURSTS_NOTE,
    )


def _swing(values: Sequence[float]) -> float:
    """Largest over smallest."""
    return ratio(max(values), min(values))


def _picture(relative: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    figure, axes = panels(3)
    for axis, (law, by_metric) in zip(axes, relative.items(), strict=True):
        for metric, values in by_metric.items():
            axis.plot(BIAS_FACTORS, values, marker="o", label=METRICS[metric])
        axis.set_yscale("log")
        axis.legend(fontsize=8)
        label(axis, x="bias factor", y="relative to 1.5", title=law.upper())
    figure.suptitle("Burstiness: the smaller the bias factor, the burstier (ctrl paper fig. 17)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="ctrl-burstiness",
        title="CTRL and AURORA under more and less bursty load",
        source=f"{SOURCE}, fig. 17",
        run=burstiness,
    ),
)

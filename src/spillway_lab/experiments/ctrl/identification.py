"""ctrl-identification: the delay model, and the headroom that fits best (fig. 5-7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import label, lines, panels
from spillway.report import Table
from spillway.workloads import curves
from spillway_lab.experiments.ctrl.curve_runs import STEP_AT_S, CurveSpec, run_curve
from spillway_lab.experiments.ctrl.setting import CAPACITY_PER_S, HEADROOM, SOURCE
from spillway_lab.experiments.outcomes import Floats, Outcome, numbers
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP_RATES_PER_S = (100.0, 150.0, 180.0, 200.0, 250.0, 300.0)
IDENTIFY_S = 100.0
HEADROOMS = tuple(np.round(np.arange(0.90, 1.001, 0.01), 2).tolist())


def model_delay_s(outcome: Outcome, headroom: float) -> Floats:
    """Eq. 2: y(k) = c / H (q(k-1) + 1), with the measured queue and cost."""
    queue_before = np.concatenate(([0.0], outcome.queued_tuples[:-1]))
    return outcome.cost_s / headroom * (queue_before + 1.0)


def error_s(outcome: Outcome, headroom: float) -> float:
    """Root mean square of model minus measurement."""
    gap = model_delay_s(outcome, headroom) - outcome.delay_by_arrival_s
    return float(np.sqrt(np.nanmean(gap**2)))


def identification(setup: Setup, duration_s: float = IDENTIFY_S) -> Report:
    steps = {
        f"step to {r:g}/s": curves.step(20.0, r, STEP_AT_S, duration_s) for r in STEP_RATES_PER_S
    }
    shapes = steps | {"sine 0-400/s": curves.sine(0.0, 400.0, duration_s)}
    specs = {
        name: CurveSpec(
            law="none",
            curve=curve,
            duration_s=duration_s,
            seed=setup.seed,
            name=name,
            drain_s=duration_s,
        )
        for name, curve in shapes.items()
    }
    runs = run_named(run_curve, specs, setup.progress)
    identified = ("step to 250/s", "sine 0-400/s")
    errors = {name: {h: error_s(runs[name], h) for h in HEADROOMS} for name in identified}
    best = {name: min(by_h, key=lambda h: by_h[h]) for name, by_h in errors.items()}
    return Report(
        experiment="ctrl-identification",
        setup=setup,
        results={
            "best_headroom": best,
            "error_s": {
                n: {f"{h:g}": round(e, 5) for h, e in by.items()} for n, by in errors.items()
            },
            "delay_growth_s_per_period": {n: round(_growth(runs[n]), 5) for n in steps},
            "step": {
                "measured_s": numbers(runs["step to 250/s"].delay_by_arrival_s),
                "model_s": numbers(model_delay_s(runs["step to 250/s"], HEADROOM)),
            },
        },
        checks=_checks(runs, best, errors),
        tables=[_growth_table({n: runs[n] for n in steps}), _error_table(errors)],
        pictures={"": lambda: _picture(runs, errors)},
    )


def _growth(outcome: Outcome) -> float:
    """Mean rise of the delay from one period to the next, in the second half of the run."""
    delays = outcome.delay_by_arrival_s[np.isfinite(outcome.delay_by_arrival_s)]
    return float(np.mean(np.diff(delays[len(delays) // 2 :])))


def _checks(
    runs: Mapping[str, Outcome],
    best: Mapping[str, float],
    errors: Mapping[str, Mapping[float, float]],
) -> list[Check]:
    below = max(abs(_growth(runs[f"step to {r:g}/s"])) for r in (100.0, 150.0, 180.0))
    above = {r: _growth(runs[f"step to {r:g}/s"]) for r in (200.0, 250.0, 300.0)}
    far = max(abs(growth - (r / CAPACITY_PER_S - 1.0)) for r, growth in above.items())
    sine = errors["sine 0-400/s"][best["sine 0-400/s"]]
    highest = float(np.nanmax(runs["sine 0-400/s"].delay_by_arrival_s))
    return [
        Check(
            name="below 190 tuples/s the delay is constant",
            paper="constant",
            here=f"changes by at most {below * 1e3:.2g} ms a period",
            holds=below < 0.005,
        ),
        Check(
            name="above it the delay grows at a stable rate (an integrator)",
            paper="growth converges at once",
            here=f"growth within {far:.3f} s a period of rate / 190 - 1",
            holds=far < 0.02,
        ),
        Check(
            name="best headroom, step input",
            paper="0.97",
            here=f"{best['step to 250/s']:g} (the engine's own share is {HEADROOM})",
            holds=abs(best["step to 250/s"] - HEADROOM) <= 0.0101,
        ),
        Check(
            name="sine input: small, periodic model errors",
            paper="small and periodic",
            here=f"{sine:.3f} s rms of delays up to {highest:.2f} s",
            holds=sine < 0.1 * highest,
        ),
    ]


def _growth_table(runs: Mapping[str, Outcome]) -> Table:
    rows = [(n, _growth(o), float(np.nanmax(o.delay_by_arrival_s))) for n, o in runs.items()]
    columns = ("input", "growth (s per period)", "longest mean delay (s)")
    return Table(
        title="response to a step at 10 s, nothing shed (fig. 5)", columns=columns, rows=rows
    )


def _error_table(errors: Mapping[str, Mapping[float, float]]) -> Table:
    rows = [(h, *(by[h] for by in errors.values())) for h in HEADROOMS]
    columns = ("H", *(f"rms error, {name} (s)" for name in errors))
    return Table(title="model against measurement (fig. 6, 7)", columns=columns, rows=rows)


def _picture(runs: Mapping[str, Outcome], errors: Mapping[str, Mapping[float, float]]) -> Figure:
    figure, axes = panels(2, 2, height=3.0)
    steps = {
        n[8:]: (o.time_s, o.delay_by_arrival_s) for n, o in runs.items() if n.startswith("step")
    }
    lines(axes[0], steps, title="steps at 10 s, nothing shed (fig. 5)")
    for axis, name in zip(axes[1:3], errors, strict=True):
        outcome = runs[name]
        curves_ = {"measured": (outcome.time_s, outcome.delay_by_arrival_s)}
        curves_ |= {
            f"model, H = {h:g}": (outcome.time_s, model_delay_s(outcome, h)) for h in (0.9, 0.97)
        }
        lines(axis, curves_, title=f"model and measurement: {name}")
    for name, by_h in errors.items():
        axes[3].plot(list(by_h), list(by_h.values()), marker="o", label=name)
    axes[3].legend(fontsize=8)
    label(axes[3], x="headroom H", y="rms error (s)", title="which H fits best (fig. 6)")
    figure.suptitle("Identification (ctrl paper fig. 5-7)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="ctrl-identification",
        title="the delay model against measurement, and the headroom that fits best",
        source=f"{SOURCE}, fig. 5-7",
        run=identification,
    ),
)

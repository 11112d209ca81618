"""ctrl-identification and ctrl-openloop: the delay model (fig. 5-7), and how AURORA fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spillway.load import laws
from spillway.model import Target
from spillway.pictures import label, lines, panels
from spillway.report import Table
from spillway.workloads import curves
from spillway.workloads.curves import RateCurve, arrivals_of
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.networks import make_setting
from spillway_lab.engine.run import simulate
from spillway_lab.experiments.ctrl.setting import HEADROOM, PERIOD_S, SOURCE, TARGET_S
from spillway_lab.experiments.outcomes import Floats, Outcome, numbers, outcome_of
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPACITY_PER_S = 190.0
STEP_AT_S = 10.0
STEP_RATES_PER_S = (100.0, 150.0, 180.0, 200.0, 250.0, 300.0)
IDENTIFY_S = 100.0
HEADROOMS = tuple(np.round(np.arange(0.90, 1.001, 0.01), 2).tolist())
OPEN_LOOP_S = 100.0


@dataclass(frozen=True, kw_only=True)
class CurveSpec:
    """One law on one rate curve, constant cost."""

    law: str
    curve: RateCurve
    duration_s: float
    seed: int
    name: str = ""
    drain_s: float = 0.0  # after the last arrival, so that every tuple's delay is known

    def __str__(self) -> str:
        return f"{self.law} {self.name}"


def run_curve(spec: CurveSpec) -> Outcome:
    setting = make_setting("ctrl")
    plant = NetworkPlant(
        setting.network,
        arrivals_of(spec.curve, spec.duration_s, spec.seed),
        target=Target(delay_s=TARGET_S),
        engine=setting.engine,
        delay=setting.delay,
        seed=spec.seed,
    )
    run_s = spec.duration_s + spec.drain_s
    return outcome_of(simulate(plant, laws.make(spec.law), run_s, PERIOD_S))


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
    specs = [
        CurveSpec(
            law="none",
            curve=curve,
            duration_s=duration_s,
            seed=setup.seed,
            name=name,
            drain_s=duration_s,
        )
        for name, curve in shapes.items()
    ]
    runs = dict(zip(shapes, run_all(run_curve, specs, setup.progress), strict=True))
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
        checks=_identification_checks(runs, best, errors),
        tables=[_growth_table({n: runs[n] for n in steps}), _error_table(errors)],
        pictures={"": lambda: _identification_picture(runs, errors)},
    )


def _growth(outcome: Outcome) -> float:
    """Mean rise of the delay from one period to the next, in the second half of the run."""
    delays = outcome.delay_by_arrival_s[np.isfinite(outcome.delay_by_arrival_s)]
    return float(np.mean(np.diff(delays[len(delays) // 2 :])))


def _identification_checks(
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


def _identification_picture(
    runs: Mapping[str, Outcome], errors: Mapping[str, Mapping[float, float]]
) -> Figure:
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
        checks=_openloop_checks(runs),
        tables=[_openloop_table(runs)],
        pictures={"": lambda: _openloop_picture(shapes, runs, duration_s)},
    )


def _end_s(outcome: Outcome) -> float:
    return float(np.nanmean(outcome.delay_s[-5:]))


def _openloop_checks(runs: Mapping[str, Mapping[str, Outcome]]) -> list[Check]:
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


def _openloop_table(runs: Mapping[str, Mapping[str, Outcome]]) -> Table:
    rows = [
        (name, law, _end_s(o), o.accumulated_violation_s, o.loss_ratio)
        for name, by_law in runs.items()
        for law, o in by_law.items()
    ]
    columns = ("input", "load manager", "delay at the end (s)", "violation (s)", "loss")
    return Table(title="the three cases of fig. 8", columns=columns, rows=rows)


def _openloop_picture(
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
        name="ctrl-identification",
        title="the delay model against measurement, and the headroom that fits best",
        source=f"{SOURCE}, fig. 5-7",
        run=identification,
    ),
    Experiment(
        name="ctrl-openloop",
        title="the three ways in which open-loop shedding (AURORA) fails",
        source=f"{SOURCE}, fig. 8",
        run=openloop,
    ),
)

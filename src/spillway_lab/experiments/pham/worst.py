"""pham-worst: load that no shedding can hold, and a job that comes and goes (fig. 20, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import lines, panels
from spillway.report import Table
from spillway.workloads.curves import S_STEP_FIRST_S, S_STEP_LEVEL_S
from spillway_lab.experiments.outcomes import Outcome
from spillway_lab.experiments.pham.setting import SOURCE, TARGET_S, Spec, run, tuned
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAWS = ("aloma", "ctrl", "aurora", "predictive")
STEP_S = 490.0  # to 2,600 tuples/s
FIRST_PER_S, RISE_PER_S = 200.0, 200.0
STAYS_S = (10.0, 5.0, 2.0, 1.0)  # how long the job stays, and stays away; 60 s of each
PATTERN_S = 60.0
JOB_SHARE = 0.5
IN_CONTROL = 1.25  # times the target


def toggling() -> tuple[tuple[float, float], ...]:
    """(from, share taken): fig. 21, starting after 10 s."""
    steps: list[tuple[float, float]] = []
    for i, stay_s in enumerate(STAYS_S):
        start_s = 10.0 + i * PATTERN_S
        for k in range(int(PATTERN_S / (2.0 * stay_s))):
            steps.append((start_s + 2 * k * stay_s, JOB_SHARE))
            steps.append((start_s + (2 * k + 1) * stay_s, 0.0))
    return tuple(steps)


def worst(setup: Setup, duration_s: float = STEP_S) -> Report:
    toggle_s = 10.0 + PATTERN_S * len(STAYS_S)
    steps = [_spec(law, setup.seed, duration_s, rising=True) for law in LAWS]
    jobs = [_spec(law, setup.seed, min(duration_s, toggle_s), rising=False) for law in LAWS]
    found = run_all(run, steps + jobs, setup.progress)
    rising = dict(zip(LAWS, found[: len(LAWS)], strict=True))
    toggled = dict(zip(LAWS, found[len(LAWS) :], strict=True))
    held = {law: last_held_per_s(o) for law, o in rising.items()}
    return Report(
        experiment="pham-worst",
        setup=setup,
        results={
            "rising": {
                law: o.summary() | {"held_until_per_s": held[law]} for law, o in rising.items()
            },
            "job": {
                law: o.summary() | {"mean_by_pattern_s": _by_pattern(o)}
                for law, o in toggled.items()
            },
        },
        checks=[*_rising_checks(held, rising), *_job_checks(toggled)],
        tables=[_rising_table(rising, held), _job_table(toggled)],
        pictures={
            "rising": lambda: _rising_picture(rising),
            "job": lambda: _job_picture(toggled),
        },
    )


def _spec(law: str, seed: int, duration_s: float, *, rising: bool) -> Spec:
    spec = Spec(
        law=law,
        arrivals="s-step" if rising else "s-c",
        background=() if rising else toggling(),
        seed=seed,
        duration_s=duration_s,
    )
    return tuned(spec) if law in ("ctrl", "aurora") else spec


def last_held_per_s(outcome: Outcome) -> float:
    """The highest level up to which the delay settled at no more than 1.25 times the target."""
    held = 0.0
    end_s, rate = S_STEP_FIRST_S, FIRST_PER_S
    while end_s <= outcome.time_s[-1] + 1e-9 and _in_control(outcome, end_s):
        held, rate, end_s = rate, rate + RISE_PER_S, end_s + S_STEP_LEVEL_S
    return held


def _in_control(outcome: Outcome, end_s: float) -> bool:
    """In the last half of a level: tuples do come out, and in time."""
    inside = (outcome.time_s > end_s - S_STEP_LEVEL_S / 2.0) & (outcome.time_s <= end_s)
    delays = outcome.delay_s[inside]
    known = delays[np.isfinite(delays)]
    alive = 2 * len(known) > len(delays)
    return bool(alive and known.mean() <= IN_CONTROL * TARGET_S)


def _rising_checks(held: Mapping[str, float], rising: Mapping[str, Outcome]) -> list[Check]:
    highest = float(np.nanmax(rising["aloma"].offered_per_s))
    return [
        Check(
            name="from some load on nobody can hold the target",
            paper="none, although almost 100 % is dropped",
            here=", ".join(f"{law} to {rate:,.0f}/s" for law, rate in held.items()),
            holds=all(rate < highest - RISE_PER_S / 2.0 for rate in held.values()),
        ),
        Check(
            name="ALoMa holds it longer than CTRL and AURORA",
            paper="ALoMa's point is the farthest to the right",
            here=f"ALoMa to {held['aloma']:,.0f}/s, CTRL {held['ctrl']:,.0f}/s,"
            f" AURORA {held['aurora']:,.0f}/s",
            holds=held["aloma"] > max(held["ctrl"], held["aurora"]),
        ),
    ]


def _by_pattern(outcome: Outcome) -> dict[str, float]:
    return {
        f"{stay_s:g}": round(
            outcome.mean_delay_between(10.0 + i * PATTERN_S, 10.0 + (i + 1) * PATTERN_S), 4
        )
        for i, stay_s in enumerate(STAYS_S)
    }


def _distance_s(outcome: Outcome, pattern: int) -> float:
    """Mean distance of the period means from the target during one pattern."""
    start_s = 10.0 + pattern * PATTERN_S
    inside = (outcome.time_s > start_s) & (outcome.time_s <= start_s + PATTERN_S)
    distances = np.abs(outcome.delay_s[inside] - TARGET_S)
    return float(np.nanmean(distances)) if np.isfinite(distances).any() else 0.0


def _job_checks(toggled: Mapping[str, Outcome]) -> list[Check]:
    aloma, ctrl, aurora = (toggled[law] for law in ("aloma", "ctrl", "aurora"))
    lowest = float(np.nanmin(aloma.delay_s[40:]))
    slow_s, fast_s = _distance_s(aloma, 0), _distance_s(aloma, len(STAYS_S) - 1)
    return [
        Check(
            name="ALoMa drops more than necessary when the job leaves: response time near 0",
            paper="points close to 0",
            here=f"down to {lowest:.2f} s",
            holds=lowest < 0.25 * TARGET_S,
        ),
        Check(
            name="ALoMa is closer to the target when the job changes every second than every 10 s",
            paper="performance becomes better",
            here=f"{fast_s:.2f} s and {slow_s:.2f} s away from it on average",
            holds=fast_s < slow_s,
        ),
        Check(
            name="CTRL fluctuates above the target",
            paper="above the target",
            here=f"mean {ctrl.mean_delay_between(10.0, 250.0):.2f} s",
            holds=ctrl.mean_delay_between(10.0, 250.0) > TARGET_S,
        ),
        Check(
            name="AURORA loses control with the job's first appearance and never recovers",
            paper="no way to recover",
            here=f"{aurora.mean_delay_between(230.0, 250.0):.1f} s at the end",
            holds=aurora.mean_delay_between(230.0, 250.0) > 3.0 * TARGET_S,
        ),
    ]


def _rising_table(rising: Mapping[str, Outcome], held: Mapping[str, float]) -> Table:
    rows = [
        (law, held[law], o.mean_violation_s, 100.0 * (1.0 - float(o.keep_fraction.min())))
        for law, o in rising.items()
    ]
    columns = ("load manager", "holds up to (tuples/s)", "average violation (s)", "most shed (%)")
    return Table(title="QN-flat, S_step (fig. 20)", columns=columns, rows=rows)


def _job_table(toggled: Mapping[str, Outcome]) -> Table:
    rows = [
        (law, *_by_pattern(o).values(), o.mean_violation_s, 100.0 * o.loss_ratio)
        for law, o in toggled.items()
    ]
    columns = ("load manager", *(f"mean delay, {s:g} s on and off" for s in STAYS_S))
    return Table(
        title="QN-flat, S_c, a job comes and goes (fig. 21)",
        columns=(*columns, "average violation (s)", "data loss (%)"),
        rows=rows,
    )


def _rising_picture(rising: Mapping[str, Outcome]) -> Figure:
    figure, axes = panels(3)
    delays = {law: (o.time_s, o.delay_s) for law, o in rising.items()}
    lines(axes[0], delays, y="response time (s)", target_s=TARGET_S, log=True)
    shed = {law: (o.time_s, 100.0 * (1.0 - o.keep_fraction)) for law, o in rising.items()}
    lines(axes[1], shed, y="shed (%)")
    offered = {"input rate": (rising["aloma"].time_s, rising["aloma"].offered_per_s)}
    lines(axes[2], offered, y="rate (tuples/s)")
    figure.suptitle("Until shedding no longer helps (thesis fig. 20)")
    return figure


def _job_picture(toggled: Mapping[str, Outcome]) -> Figure:
    figure, axes = panels(len(toggled), height=1.9)
    for axis, (law, outcome) in zip(axes, toggled.items(), strict=True):
        lines(axis, {law: (outcome.time_s, outcome.delay_s)}, target_s=TARGET_S)
    figure.suptitle("A job that comes and goes every 10, 5, 2 and 1 s (thesis fig. 21)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="pham-worst",
        title="worst cases: load beyond all shedding, and a job that comes and goes",
        source=f"{SOURCE}, fig. 20 and 21",
        run=worst,
    ),
)

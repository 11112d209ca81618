"""ctrl-target: delay targets changed at run time (fig. 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spillway.pictures import lines, panels
from spillway.report import Table
from spillway_lab.experiments.ctrl.setting import (
    BASELINE_NOTE,
    DURATION_S,
    PAPER_LAWS,
    SOURCE,
    Spec,
    run,
)
from spillway_lab.experiments.outcomes import Outcome, numbers
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGETS_S = ((0.0, 1.0), (150.0, 3.0), (300.0, 5.0))


def target(setup: Setup, duration_s: float = DURATION_S) -> Report:
    """Fig. 18: y_d is 1 s, from 150 s on 3 s, from 300 s on 5 s."""
    stretch = duration_s / DURATION_S
    steps = tuple((from_s * stretch, target_s) for from_s, target_s in TARGETS_S)
    specs = [
        Spec(law=law, seed=setup.seed, duration_s=duration_s, targets_s=steps) for law in PAPER_LAWS
    ]
    specs.append(Spec(law="aurora", seed=setup.seed, duration_s=duration_s, targets_s=steps[:1]))
    *found, unchanged = run_all(run, specs, setup.progress)
    runs = dict(zip(PAPER_LAWS, found, strict=True))
    reached = {law: [_reached_s(o, *step) for step in steps[1:]] for law, o in runs.items()}
    deaf = bool(np.array_equal(runs["aurora"].keep_fraction, unchanged.keep_fraction))
    rows = [
        (
            law,
            *(r if r is not None else "never" for r in reached[law]),
            *_means(o, steps, duration_s),
        )
        for law, o in runs.items()
    ]
    means = (f"mean delay at target {t:g} s" for _, t in steps)
    columns = ("load manager", "3 s reached after (s)", "5 s reached after (s)", *means)
    return Report(
        experiment="ctrl-target",
        setup=setup,
        results={
            law: o.summary() | {"reached_after_s": reached[law], "delay_s": numbers(o.delay_s)}
            for law, o in runs.items()
        },
        checks=_checks(reached, deaf),
        tables=[Table(title="targets 1, 3, 5 s on web load", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(runs, steps, duration_s)},
    )


def _reached_s(outcome: Outcome, from_s: float, target_s: float) -> float | None:
    """Seconds from the change until the delay of arrivals first comes within 10 % of the target."""
    after = outcome.time_s > from_s
    close = after & (outcome.delay_by_arrival_s >= 0.9 * target_s)
    return float(outcome.time_s[close][0] - from_s) if close.any() else None


def _means(
    outcome: Outcome, steps: Sequence[tuple[float, float]], duration_s: float
) -> list[float]:
    ends = [from_s for from_s, _ in steps[1:]] + [duration_s]
    return [
        outcome.mean_delay_between(from_s, end)
        for (from_s, _), end in zip(steps, ends, strict=True)
    ]


def _checks(reached: Mapping[str, Sequence[float | None]], deaf: bool) -> list[Check]:
    slow = [r if r is not None else np.inf for r in reached["baseline"]]
    quick = [r if r is not None else np.inf for r in reached["ctrl"]]
    return [
        Check(
            name="CTRL reaches a new target very quickly",
            paper="very quickly (12 periods for 98 % by design)",
            here=" and ".join(f"{s:g} s" for s in quick),
            holds=max(quick) <= 24.0,
        ),
        Check(
            name="AURORA does not respond to a new target at all",
            paper="does not respond",
            here="the same decisions as with a constant target" if deaf else "other decisions",
            holds=deaf,
        ),
        Check(
            name="BASELINE takes very long to reach a new target",
            paper="very long",
            here=" and ".join(f"{s:g} s" for s in slow),
            holds=max(slow) > 3.0 * max(quick),
            why_not=BASELINE_NOTE,
        ),
    ]


def _picture(
    runs: Mapping[str, Outcome], steps: Sequence[tuple[float, float]], duration_s: float
) -> Figure:
    figure, axes = panels(1, height=4.0)
    lines(axes[0], {law: (o.time_s, o.delay_by_arrival_s) for law, o in runs.items()})
    times_s = [*(from_s for from_s, _ in steps), duration_s]
    targets_s = [*(t for _, t in steps), steps[-1][1]]
    axes[0].step(times_s, targets_s, where="post", color="black", linestyle="--", label="target")
    axes[0].legend(fontsize=8, ncols=2)
    figure.suptitle("Targets changed at run time, web load (ctrl paper fig. 18)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="ctrl-target",
        title="delay targets changed at run time",
        source=f"{SOURCE}, fig. 18",
        run=target,
    ),
)

"""dilos-pareto, dilos-real, dilos-cycle: loads that change (tables 9-12, fig. 28-32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from spillway.classes.capacity import original_shares
from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.engine.class_networks import CLASS_LOAD, CLASSES, HIGH, RATE_PER_S
from spillway_lab.engine.classes import MARGIN
from spillway_lab.experiments.dilos.panels import class_lines, quota_lines, side_by_side, spared
from spillway_lab.experiments.dilos.setting import (
    CLASS_1_PER_S,
    CLASS_COLOURS,
    CYCLE_PERIODS,
    LEVEL_S,
    MODES,
    PERIOD_S,
    SOURCE,
    SYNERGY,
    ClassesRun,
    Spec,
    rates_of,
    runner_on,
)
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARETO_S = LEVEL_S * len(CLASS_1_PER_S)
REAL_S = 18.0
CYCLE_S = 12.0
CYCLES = (1, 2, 5, 10, 20)  # in load management cycles
PARETO_MS = {
    "separate": (5.30, 15.13, 176.37),
    "dilos": (6.47, 43.98, 84.21),
    "dilos-sharing": (5.94, 38.04, 72.73),
}
PARETO_LOSS = {
    "separate": (0.0, 0.0, 8.53),
    "dilos": (0.0, 0.23, 2.30),
    "dilos-sharing": (0.0, 0.16, 1.42),
}
REAL_MS = {
    "separate": (22.31, 68.23, 300.91),
    "dilos": (25.69, 76.86, 122.66),
    "dilos-sharing": (25.03, 70.29, 127.28),
}
REAL_LOSS = {
    "separate": (0.01, 0.79, 21.67),
    "dilos": (0.46, 0.68, 8.70),
    "dilos-sharing": (0.44, 0.82, 6.54),
}
CAPPED = "dilos-capped"
NAMES: Mapping[str, str] = {str(mode): name for mode, name in MODES.items()} | {
    CAPPED: "DILoS, class 1 keeps what it needs at its peaks"
}


def pareto(setup: Setup, duration_s: float = PARETO_S) -> Report:
    specs = {
        str(mode): Spec(mode=mode, arrivals="sd-p", seed=setup.seed, duration_s=duration_s)
        for mode in SYNERGY
    }
    runs = _run(setup, specs)
    return Report(
        experiment="dilos-pareto",
        setup=setup,
        results={mode: run.summary() for mode, run in runs.items()},
        checks=_pareto_checks(runs),
        tables=side_by_side(
            "with SD_p and QN-A (tables 9, 10)", runs, NAMES, PARETO_MS, PARETO_LOSS
        ),
        pictures={"": lambda: _pareto_picture(runs["dilos-sharing"])},
    )


def _run(setup: Setup, specs: Mapping[str, Spec]) -> dict[str, ClassesRun]:
    found = run_all(runner_on(setup.plant), list(specs.values()), setup.progress)
    return dict(zip(specs, found, strict=True))


def _total_loss(run: ClassesRun) -> float:
    """Of all tuples offered to all classes."""
    offered = [outcome.offered_per_s.sum() for outcome in run.classes.values()]
    lost = [outcome.loss_ratio for outcome in run.classes.values()]
    return float(np.dot(offered, lost) / sum(offered))


def _pareto_checks(runs: Mapping[str, ClassesRun]) -> list[Check]:
    loss = {mode: run.classes["3"].loss_ratio for mode, run in runs.items()}
    synergy = {mode: run for mode, run in runs.items() if mode != "separate"}
    class_1, levels = runs["dilos"].quotas[HIGH], _by_level(runs["dilos"])
    return [
        Check(
            name="the synergy saves most of what class 3 loses",
            paper="2.30 % instead of 8.53 %",
            here=f"{loss['dilos']:.2%} instead of {loss['separate']:.2%}",
            holds=loss["dilos"] < 0.5 * loss["separate"],
        ),
        Check(
            name="sharing saves more",
            paper="1.42 %",
            here=f"{loss['dilos-sharing']:.2%}",
            holds=loss["dilos-sharing"] < loss["dilos"],
        ),
        spared(
            synergy, {m: NAMES[m] for m in synergy}, "class 2 loses 0.23 and 0.16 %", most=0.005
        ),
        Check(
            name="class 1 lends while its load is low and gets its share back when it rises",
            paper="all or part of its original capacity is returned",
            here=", ".join(f"{low:g}-{high:g}/s: {share:.0%}" for (low, high), share in levels),
            holds=class_1.min() < 0.5 and _follows(levels),
        ),
    ]


def _by_level(run: ClassesRun) -> list[tuple[tuple[float, float], float]]:
    """Class 1's mean quota at every level of its rate, the first cycle after a change left out."""
    found = []
    for i, level in enumerate(CLASS_1_PER_S):
        settled_s = i * LEVEL_S + 1.5 * CYCLE_PERIODS * PERIOD_S
        inside = (run.quota_times_s >= settled_s) & (run.quota_times_s <= (i + 1) * LEVEL_S)
        if inside.any():
            found.append((level, float(run.quotas[HIGH][inside].mean())))
    return found


def _follows(levels: list[tuple[tuple[float, float], float]]) -> bool:
    shares = [share for _, share in sorted(levels)]
    return shares[-1] > shares[0]


def real(setup: Setup, duration_s: float = REAL_S) -> Report:
    specs = {
        str(mode): Spec(mode=mode, arrivals="sd-r", seed=setup.seed, duration_s=duration_s)
        for mode in SYNERGY
    }
    lend = lend_cap(specs["dilos"])
    specs[CAPPED] = Spec(
        mode="dilos", arrivals="sd-r", seed=setup.seed, duration_s=duration_s, lend=lend
    )
    runs = _run(setup, specs)
    return Report(
        experiment="dilos-real",
        setup=setup,
        results={
            **{mode: run.summary() for mode, run in runs.items()},
            "lend_cap": round(lend, 4),
        },
        checks=_real_checks(runs, lend),
        tables=side_by_side("with SD_r and QN-B (tables 11, 12)", runs, NAMES, REAL_MS, REAL_LOSS),
        pictures={"": lambda: _real_picture(runs["dilos-sharing"])},
    )


def lend_cap(spec: Spec) -> float:
    """What class 1 can lend and still have, at once, all it needs in its busiest cycle."""
    curve = rates_of(spec)[HIGH]
    cycle_s = spec.cycle_periods * PERIOD_S
    grid_s = np.arange(0.0, spec.duration_s, 0.05)
    window = max(1, round(cycle_s / 0.05))
    rates = np.convolve(curve.at(grid_s), np.ones(window) / window, mode="valid")
    need = MARGIN * 3.0 * CLASS_LOAD * float(rates.max()) / RATE_PER_S  # QN-B: three times QN-A
    own = original_shares({name: c.priority for name, c in CLASSES.items()})[HIGH]
    return max(0.0, 1.0 - need / own)


def _real_checks(runs: Mapping[str, ClassesRun], lend: float) -> list[Check]:
    lost = {mode: [run.classes[c].loss_ratio for c in CLASSES] for mode, run in runs.items()}
    total = {mode: _total_loss(run) for mode, run in runs.items()}
    return [
        Check(
            name="the synergy saves much more data of class 3",
            paper="8.70 % instead of 21.67 %",
            here=f"{lost['dilos'][2]:.2%} instead of {lost['separate'][2]:.2%}",
            holds=lost["dilos"][2] < 0.6 * lost["separate"][2],
        ),
        Check(
            name="and of all classes together",
            paper="3.28 % instead of 7.49 %",
            here=f"{total['dilos']:.2%} instead of {total['separate']:.2%}",
            holds=total["dilos"] < total["separate"],
        ),
        Check(
            name="sharing saves more of class 3",
            paper="6.54 %",
            here=f"{lost['dilos-sharing'][2]:.2%}",
            holds=lost["dilos-sharing"][2] <= lost["dilos"][2],
        ),
        Check(
            name="class 1, which lends, pays a little at its sudden peaks",
            paper="0.46 % instead of 0.01 %",
            here=f"{lost['dilos'][0]:.2%} instead of {lost['separate'][0]:.2%}",
            holds=lost["separate"][0] <= lost["dilos"][0] < 0.03,
            note="when the stretch of the trace has no peak above what it kept, it pays nothing",
        ),
        Check(
            name="with a cap at its own need class 1 pays nothing",
            paper="proposed, not measured",
            here=f"lends at most {lend:.0%} of its share and loses {lost[CAPPED][0]:.2%};"
            f" class 3 {lost[CAPPED][2]:.2%}",
            holds=lost[CAPPED][0] <= lost["separate"][0],
        ),
    ]


def cycle(setup: Setup, duration_s: float = CYCLE_S) -> Report:
    specs = {
        str(periods): Spec(
            mode="dilos-sharing",
            arrivals="sd-r",
            seed=setup.seed,
            duration_s=duration_s,
            cycle_periods=periods,
        )
        for periods in CYCLES
    }
    runs = _run(setup, specs)
    loss = {
        name: {p: 100.0 * run.classes[name].loss_ratio for p, run in runs.items()}
        for name in CLASSES
    }
    rows = [(int(p), *(loss[name][p] for name in CLASSES)) for p in runs]
    columns = ("cycle (periods)", *(f"class {name} loses (%)" for name in CLASSES))
    return Report(
        experiment="dilos-cycle",
        setup=setup,
        results={p: run.summary() for p, run in runs.items()},
        checks=_cycle_checks(runs),
        tables=[Table(title="SD_r, QN-B, DILoS with sharing", columns=columns, rows=rows)],
        pictures={"": lambda: _cycle_picture(loss)},
    )


def _cycle_checks(runs: Mapping[str, ClassesRun]) -> list[Check]:
    class_1 = {int(p): run.classes[HIGH].loss_ratio for p, run in runs.items()}
    total = {int(p): _total_loss(run) for p, run in runs.items()}
    short = min(class_1[1], class_1[2])
    spread = max(total.values()) - min(total.values())
    return [
        Check(
            name="class 1 loses least with a cycle of one or two periods",
            paper="smallest at 150 to 300 ms",
            here=", ".join(f"{p}: {loss:.2%}" for p, loss in class_1.items()),
            holds=short <= min(class_1.values()),
        ),
        Check(
            name="the length of the cycle matters little",
            paper="the difference is rather small",
            here=f"total loss {min(total.values()):.2%} to {max(total.values()):.2%}",
            holds=spread < 0.03,
        ),
    ]


def _pareto_picture(run: ClassesRun) -> Figure:
    figure, axes = panels(4, height=2.1)
    class_lines(axes[0], run, "delay", y="response time (ms)", log=True)
    class_lines(axes[1], run, "headroom", y="headroom")
    quota_lines(axes[2], run)
    class_lines(axes[3], run, "shed", y="shed (%)")
    figure.suptitle("SD_p, QN-A, DILoS with sharing (thesis fig. 28, 29)")
    return figure


def _real_picture(run: ClassesRun) -> Figure:
    figure, axes = panels(5, height=2.0)
    class_lines(axes[0], run, "delay", y="response time (ms)", log=True)
    class_lines(axes[1], run, "headroom", y="headroom")
    quota_lines(axes[2], run)
    class_lines(axes[3], run, "shed", y="shed (%)")
    class_lines(axes[4], run, "rate", y="offered (tuples/s)")
    figure.suptitle("SD_r, QN-B, DILoS with sharing (thesis fig. 30, 31)")
    return figure


def _cycle_picture(loss: Mapping[str, Mapping[str, float]]) -> Figure:
    figure, axes = panels(1, height=3.5)
    for name, by_cycle in loss.items():
        lengths = [int(p) for p in by_cycle]
        axes[0].plot(
            lengths, list(by_cycle.values()), "o-", color=CLASS_COLOURS[name], label=f"class {name}"
        )
    axes[0].set_xscale("log", base=2)
    axes[0].set_yscale("symlog", linthresh=0.01)
    axes[0].set_ylim(bottom=-0.005, top=2.0 * max(max(c.values()) for c in loss.values()) + 0.1)
    axes[0].set_xticks(list(CYCLES), [str(p) for p in CYCLES])
    label(axes[0], x="redistribution cycle (control periods)", y="data loss (%)")
    axes[0].legend(fontsize=8)
    figure.suptitle("How often capacity moves (thesis fig. 32)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dilos-pareto",
        title="class 1's load changes level, all rates jump every period",
        source=f"{SOURCE}, tables 9 and 10, fig. 28 and 29",
        run=pareto,
    ),
    Experiment(
        name="dilos-real",
        title="class 1 follows a real trace; a class that caps its lending pays nothing",
        source=f"{SOURCE}, tables 11 and 12, fig. 30 and 31",
        run=real,
    ),
    Experiment(
        name="dilos-cycle",
        title="how often capacity should be redistributed",
        source=f"{SOURCE}, fig. 32",
        run=cycle,
    ),
)

"""dilos-pareto: class 1's load changes level (tables 9 and 10, fig. 28 and 29)."""

from collections.abc import Mapping

from spillway_lab.engine.class_networks import HIGH
from spillway_lab.experiments.dilos.claims import spared
from spillway_lab.experiments.dilos.panels import course, side_by_side
from spillway_lab.experiments.dilos.setting import (
    CLASS_1_PER_S,
    CYCLE_PERIODS,
    LEVEL_S,
    MODES,
    PERIOD_S,
    SOURCE,
    SYNERGY,
    ClassesRun,
    Spec,
    run,
)
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

PARETO_S = LEVEL_S * len(CLASS_1_PER_S)
PAPER_MS = {
    "separate": (5.30, 15.13, 176.37),
    "dilos": (6.47, 43.98, 84.21),
    "dilos-sharing": (5.94, 38.04, 72.73),
}
PAPER_LOSS = {
    "separate": (0.0, 0.0, 8.53),
    "dilos": (0.0, 0.23, 2.30),
    "dilos-sharing": (0.0, 0.16, 1.42),
}
PICTURE = "SD_p, QN-A, DILoS with sharing (thesis fig. 28, 29)"
NAMES: Mapping[str, str] = {str(mode): MODES[mode] for mode in SYNERGY}


def pareto(setup: Setup, duration_s: float = PARETO_S) -> Report:
    specs = {
        str(mode): Spec(mode=mode, arrivals="sd-p", seed=setup.seed, duration_s=duration_s)
        for mode in SYNERGY
    }
    runs = run_named(run, specs, setup.progress)
    return Report(
        experiment="dilos-pareto",
        setup=setup,
        results={mode: run.summary() for mode, run in runs.items()},
        checks=_checks(runs),
        tables=side_by_side("with SD_p and QN-A (tables 9, 10)", runs, NAMES, PAPER_MS, PAPER_LOSS),
        pictures={"": lambda: course(runs["dilos-sharing"], PICTURE)},
    )


def _checks(runs: Mapping[str, ClassesRun]) -> list[Check]:
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


EXPERIMENTS = (
    Experiment(
        name="dilos-pareto",
        title="class 1's load changes level, all rates jump every period",
        source=f"{SOURCE}, tables 9 and 10, fig. 28 and 29",
        run=pareto,
    ),
)

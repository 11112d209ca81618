"""FUGU's questions on real executors: decisions after a load step, and how much thresholds matter.

The load steps of `spillway bench executors` on a standalone cluster, shorter, so that an experiment
takes less than a quarter of an hour.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spillway.report import Progress
from spillway_lab.benchmarks.executors import table_of
from spillway_lab.benchmarks.executors_judged import Steps
from spillway_lab.benchmarks.executors_run import WORKERS, Lengths, measured, session
from spillway_lab.benchmarks.standalone import standalone
from spillway_lab.experiments.report import Check, Report, Setup

LENGTHS = Lengths(warm_s=20.0, usual_s=10.0, high_s=60.0, after_s=35.0)
MOST_DECISIONS = 2
STEPPED = ("local-thresholds", "sarsa", "control", "true-rate")
CONFIGURED = ("local-thresholds", "true-rate")
CONFIGURATIONS: Mapping[str, Mapping[str, float]] = {
    "default": {},
    "lower 0.3": {"lower": 0.3},
    "upper 0.85": {"upper": 0.85},
}


def steps_on_cluster(setup: Setup) -> Report:
    runs = _runs({policy: (policy, {}) for policy in STEPPED}, setup.progress)
    counts = runs["true-rate"].decisions()
    check = Check(
        name="true rate needs one or two decisions after each load step, on real executors",
        paper="(beyond the paper)",
        here=f"{counts} after the steps; the target {_held(runs['true-rate'])}",
        holds=min(counts) >= 1 and max(counts) <= MOST_DECISIONS and runs["true-rate"].holds(),
    )
    return _report("fugu-steps", setup, runs, [check])


def configurability_on_cluster(setup: Setup) -> Report:
    jobs = {
        f"{policy}, {label}": (policy, given)
        for policy in CONFIGURED
        for label, given in CONFIGURATIONS.items()
    }
    runs = _runs(jobs, setup.progress)
    spent = {p: _spread(p, {n: s.executor_s() for n, s in runs.items()}) for p in CONFIGURED}
    check = Check(
        name="executor seconds depend less on thresholds with true rate than with local thresholds",
        paper="(beyond the paper)",
        here=", ".join(
            f"{policy} {spread:.0f} s between extremes" for policy, spread in spent.items()
        ),
        holds=spent["true-rate"] <= spent["local-thresholds"],
    )
    return _report("fugu-configurability", setup, runs, [check])


def _runs(
    jobs: Mapping[str, tuple[str, Mapping[str, Any]]], progress: Progress
) -> dict[str, Steps]:
    folder, runs = Path(tempfile.mkdtemp(prefix="spillway-standalone-")), dict[str, Steps]()
    progress(f"starting {WORKERS} workers", 0.0)
    try:
        with standalone(WORKERS, folder) as address, session(address, peer=False) as spark:
            for name, (policy, given) in jobs.items():
                part = _part(progress, name, len(runs), len(jobs))
                runs[name], _ = measured(policy, address, spark, LENGTHS, part, given)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


def _part(progress: Progress, name: str, place: int, parts: int) -> Progress:
    return lambda words, share: progress(name, (place + share) / parts)


def _report(
    experiment: str, setup: Setup, runs: Mapping[str, Steps], checks: list[Check]
) -> Report:
    results = {name: steps.figures() for name, steps in runs.items()}
    return Report(
        experiment=experiment,
        setup=setup,
        results=results,
        checks=checks,
        tables=[table_of("load steps 1x, 3x, 1x on eight workers of one core", results)],
    )


def _spread(policy: str, executor_s: Mapping[str, float]) -> float:
    own = [spent for name, spent in executor_s.items() if name.startswith(f"{policy},")]
    return max(own) - min(own)


def _held(steps: Steps) -> str:
    settle_s = steps.settle_s()
    return "never held again" if settle_s is None else f"held again after {settle_s:.0f} s"

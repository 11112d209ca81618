"""Policies by name, and many scaling runs at once."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from spillway.cluster.scaling.control import Control
from spillway.cluster.scaling.global_thresholds import GlobalThresholds
from spillway.cluster.scaling.latency_sarsa import LatencySarsa
from spillway.cluster.scaling.local_thresholds import LocalThresholds
from spillway.cluster.scaling.policy import ScalingPolicy, ScalingSettings
from spillway.cluster.scaling.sarsa import Sarsa
from spillway.cluster.scaling.sarsa_table import Learning
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.scaling.true_rate import TrueRate
from spillway.report import Progress
from spillway_lab.experiments.fugu_market import market_workload
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling

POLICIES: Mapping[str, Callable[[ScalingSettings, Learning], ScalingPolicy]] = {
    "global thresholds": lambda settings, _: GlobalThresholds(settings),
    "local thresholds": lambda settings, _: LocalThresholds(settings),
    "Sarsa": Sarsa,
    "latency Sarsa": LatencySarsa,
    "control": lambda settings, _: Control(settings),
    "true rate": lambda settings, _: TrueRate(settings),
}
PAPER = ("global thresholds", "local thresholds", "Sarsa")
OURS = ("latency Sarsa", "control", "true rate")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: what varies in the paper's experiments."""

    policy: str
    settings: ScalingSettings = field(default_factory=ScalingSettings)
    learning: Learning = field(default_factory=Learning)
    day: str = "day1"
    seed: int = 1


def scaler_of(policy: str, settings: ScalingSettings, learning: Learning) -> Scaler:
    """The paper's policies as published, ours with memory of what did not help."""
    made = POLICIES[policy](settings, learning)
    return Scaler(made, settings, learn_from_failure=policy in OURS)


def run_job(job: Job) -> ScalingRun:
    workload = market_workload(job.day, job.seed)
    return run_scaling(workload, scaler_of(job.policy, job.settings, job.learning))


def run_all(jobs: Sequence[Job], progress: Progress) -> list[ScalingRun]:
    """All jobs, in order, on as many processes as there are cores."""
    found: list[ScalingRun] = []
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for job, run in zip(jobs, pool.map(run_job, jobs), strict=True):
            found.append(run)
            progress(f"{job.policy}, {job.day}", len(found) / len(jobs))
    return found

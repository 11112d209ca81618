"""Policies by name, and one scaling run each on a market day."""

from collections.abc import Callable, Mapping
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
from spillway_lab.experiments.fugu.market import market_workload
from spillway_lab.experiments.fugu.sabotaged import (
    ConstantLatencySarsa,
    ConstantSarsa,
    FlippedLatencySarsa,
    FlippedSarsa,
    Idle,
)
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling

POLICIES: Mapping[str, Callable[[ScalingSettings, Learning], ScalingPolicy]] = {
    "global thresholds": lambda settings, _: GlobalThresholds(settings),
    "local thresholds": lambda settings, _: LocalThresholds(settings),
    "Sarsa": Sarsa,
    "latency Sarsa": LatencySarsa,
    "control": lambda settings, _: Control(settings),
    "true rate": lambda settings, _: TrueRate(settings),
}
SABOTAGED: Mapping[str, Callable[[ScalingSettings, Learning], ScalingPolicy]] = {
    "idle": Idle,
    "constant Sarsa": ConstantSarsa,
    "flipped Sarsa": FlippedSarsa,
    "constant latency Sarsa": ConstantLatencySarsa,
    "flipped latency Sarsa": FlippedLatencySarsa,
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

    def __str__(self) -> str:
        return f"{self.policy}, {self.day}"


def scaler_of(policy: str, settings: ScalingSettings, learning: Learning) -> Scaler:
    """The paper's policies as published, ours with memory of what did not help."""
    made = {**POLICIES, **SABOTAGED}[policy](settings, learning)
    return Scaler(made, settings, learn_from_failure=policy in OURS)


def run_job(job: Job) -> ScalingRun:
    workload = market_workload(job.day, job.seed)
    return run_scaling(workload, scaler_of(job.policy, job.settings, job.learning))


FIGURES = ("avg util", "delay p50 [s]", "p90", "moves", "host hours", "helped")


def figures_of(run: ScalingRun) -> tuple[float, ...]:
    found = run.summary()
    keys = ("utilisation_mean", "delay_p50_s", "delay_p90_s", "moves", "host_hours")
    return (*(found[key] for key in keys), found["helped_fraction"])

"""fugu-steps: how many decisions every scaler needs after a step of the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway.report import Table
from spillway_lab.experiments.fugu.market import SECTORS
from spillway_lab.experiments.fugu.pictures import courses
from spillway_lab.experiments.fugu.runs import FIGURES, POLICIES, figures_of, scaler_of
from spillway_lab.experiments.fugu.summaries import holds_the_load
from spillway_lab.experiments.report import Check, Experiment, Report, Setup
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling
from spillway_lab.simulated_cluster.workload import ClusterWorkload, sector_queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 10
HOLD_S = 300
MOST_P90_S = 1.0  # a tenth of the time may go by after steps; ten of them do not take so long
LEAST_CORES, MOST_CORES = 0.8, 5.5  # at the target utilisation 2 to 10 hosts
RATE_PER_CORE_S = 9000.0

Floats = npt.NDArray[np.float64]


def steps(setup: Setup) -> Report:
    """Jumps of the load between 0.8 and 5.5 cores, held for five minutes each; on a cluster one
    up and one down."""
    if setup.plant == "cluster":
        from spillway_lab.experiments.fugu.on_cluster import steps_on_cluster  # brings Spark

        return steps_on_cluster(setup)
    workload, levels = step_workload(setup.seed)
    settings = ScalingSettings()
    runs: dict[str, ScalingRun] = {}
    for done, policy in enumerate(POLICIES):
        runs[policy] = run_scaling(workload, scaler_of(policy, settings, Learning()))
        setup.progress(policy, (done + 1) / len(POLICIES))
    counts = {policy: decisions_per_step(run) for policy, run in runs.items()}
    rows = [
        (policy, int(counts[policy].max()), float(counts[policy].mean()), *figures_of(run))
        for policy, run in runs.items()
    ]
    return Report(
        experiment="fugu-steps",
        setup=setup,
        results={
            "levels_cores": levels.tolist(),
            "decisions_per_step": {policy: count.tolist() for policy, count in counts.items()},
            "runs": {policy: run.summary() for policy, run in runs.items()},
        },
        checks=[one_step_check(runs["true rate"])],
        tables=[
            Table(
                title=f"{STEPS} load steps: scaling decisions per step, and what they lead to",
                columns=("scaler", "most", "mean", *FIGURES),
                rows=rows,
            )
        ],
        pictures={"": lambda: _picture(workload, runs)},
    )


def one_step_check(run: ScalingRun) -> Check:
    """Few decisions are no merit of a scaler that is late, or pays for idle hosts."""
    counts, summary = decisions_per_step(run), run.summary()
    fits = holds_the_load(summary, ScalingSettings().target, MOST_P90_S)
    return Check(
        name="the one-step scaler fits the cluster in at most 2 decisions per load step",
        paper="(beyond the paper; a decision is one plan of starts, stops and moves)",
        here=f"at most {counts.max()}, on average {counts.mean():.1f};"
        f" p90 {summary['delay_p90_s']:.2f} s, utilisation {summary['utilisation_mean']:.2f}",
        holds=bool(counts.sum() > 0 and counts.max() <= 2) and fits,
    )


def step_workload(seed: int) -> tuple[ClusterWorkload, Floats]:
    """Levels drawn evenly on a log scale; Poisson ticks; sectors of uneven popularity."""
    rng = np.random.default_rng((seed, 77))
    levels = np.exp(rng.uniform(np.log(LEAST_CORES), np.log(MOST_CORES), size=STEPS))
    share = rng.dirichlet(np.full(SECTORS, 8.0))
    rates = np.repeat(levels, HOLD_S)[:, None] * share * RATE_PER_CORE_S
    # One tick of the recording stands for 200: so does a drawn one here.
    ticks = rng.poisson(rates / 200.0).astype(np.float64) * 200.0
    mean_cores = float(levels.mean())
    workload = sector_queries(ticks, step_s=1.0, queries=35, mean_cores=mean_cores, rng=rng)
    return workload, levels


def decisions_per_step(run: ScalingRun) -> npt.NDArray[np.int64]:
    """A decision in the second in which the load jumps still belongs to the level before."""
    step = np.clip(np.ceil(run.decided_s / HOLD_S).astype(np.int64) - 1, 0, STEPS - 1)
    return np.bincount(step, minlength=STEPS)


def _picture(workload: ClusterWorkload, runs: Mapping[str, ScalingRun]) -> Figure:
    chosen = ("local thresholds", "Sarsa", "control", "true rate")
    wanted: Floats = workload.demand_cores.sum(axis=(0, 2)).reshape(-1, 5).mean(axis=1)
    time_s: Floats = np.arange(len(wanted), dtype=np.float64) * 5.0
    hosts = {name: (runs[name].time_s, runs[name].hosts) for name in chosen}
    delays = {name: (runs[name].time_s, runs[name].delay_s) for name in chosen}
    demand = {"wanted / target": (time_s, wanted / ScalingSettings().target)}
    return courses("Load steps", {"hosts": {**hosts, **demand}, "delay [s]": delays})


EXPERIMENTS = (
    Experiment(
        name="fugu-steps",
        title="every scaler on load steps: how many decisions it needs",
        source="beyond FUGU 2014 (DS2, control)",
        run=steps,
        plants=("sim", "cluster"),
    ),
)

"""Figures of a policy over its variants, each the mean over three seeds.

The seeds draw queries, windows and the ticks within a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spillway.report import Table
from spillway_lab.experiments.fugu.pictures import bars
from spillway_lab.experiments.fugu.runs import Job, run_job
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = 3
LEAST_USE = 0.75  # of the target utilisation, on average
COLUMNS = {
    "util min": "utilisation_min",
    "avg": "utilisation_mean",
    "max": "utilisation_max",
    "delay p10 [s]": "delay_p10_s",
    "p50": "delay_p50_s",
    "p90": "delay_p90_s",
    "decisions": "decisions",
    "moves": "moves",
    "host hours": "host_hours",
}
SAME = (
    "the published reward pays 1 for standing still anywhere, so the value of the action that is"
    " taken first rises to 1/(1 - beta) = 1.11, above every other entry, and without exploration"
    " the others are not tried again; a host that is released takes its table along. What is left"
    " to learn from is the penalty for refused releases, so the table stays close to the"
    " thresholds that it was made from (docs/scaling.md)"
)
IDLER = (
    "what a table learns is that releases are refused, so it releases less: idler hosts and lower"
    " latency, where the paper reports fuller hosts"
)

PerSeed = npt.NDArray[np.float64]
Runs = Sequence[Mapping[str, float]]  # a summary per seed
Summaries = Mapping[str, Mapping[str, Runs]]  # policy, label -> runs


def seeds_of(setup: Setup) -> range:
    return range(setup.seed, setup.seed + SEEDS)


def run_jobs(jobs: Mapping[tuple[str, str], Sequence[Job]], setup: Setup) -> Summaries:
    """Jobs by policy and label, one for each seed."""
    flat = [job for several in jobs.values() for job in several]
    runs = iter(run_all(run_job, flat, setup.progress))
    found: dict[str, dict[str, Runs]] = {}
    for (policy, label), several in jobs.items():
        found.setdefault(policy, {})[label] = [next(runs).summary() for _ in several]
    return found


def mean(runs: Runs) -> dict[str, float]:
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Per seed: largest minus smallest over the labels."""

    utilisation: PerSeed
    p90_delay_s: PerSeed


def spread(by_label: Mapping[str, Runs]) -> Spread:
    def extent(key: str) -> PerSeed:
        values = np.array([[run[key] for run in runs] for runs in by_label.values()])
        widest: PerSeed = values.max(axis=0) - values.min(axis=0)
        return widest

    return Spread(utilisation=extent("utilisation_mean"), p90_delay_s=extent("delay_p90_s"))


def clearly_less(ours: PerSeed, theirs: PerSeed) -> bool:
    """Less by more than the standard error of the difference, paired by seed."""
    difference = theirs - ours
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return bool(difference.mean() > error)


def holds_the_load(summary: Mapping[str, float], target: float, most_p90_s: float) -> bool:
    """Neither late nor wasteful: an idle scaler is one of the two, whatever the load does."""
    return (
        summary["utilisation_mean"] >= LEAST_USE * target and summary["delay_p90_s"] <= most_p90_s
    )


def results_of(found: Summaries) -> dict[str, dict[str, dict[str, float]]]:
    return {
        policy: {label: mean(runs) for label, runs in by_label.items()}
        for policy, by_label in found.items()
    }


def tables_of(found: Summaries) -> list[Table]:
    return [
        Table(
            title=policy,
            columns=("", *COLUMNS),
            rows=[
                (label, *(mean(runs)[key] for key in COLUMNS.values()))
                for label, runs in by_label.items()
            ],
        )
        for policy, by_label in found.items()
    ]


def spread_table(found: Summaries) -> Table:
    rows = []
    for policy, by_label in found.items():
        width = spread(by_label)
        rows.append((policy, float(width.utilisation.mean()), float(width.p90_delay_s.mean())))
    columns = ("policy", "mean utilisation", "p90 delay [s]")
    return Table(title="largest minus smallest", columns=columns, rows=rows)


def pictures_of(found: Summaries, what: str) -> dict[str, Callable[[], Figure]]:
    def draw(policy: str) -> Figure:
        by_label = found[policy]
        means = [mean(runs) for runs in by_label.values()]
        return bars(f"{policy}: {what}", list(by_label), means)

    return {policy.replace(" ", "-").lower(): partial(draw, policy) for policy in found}

"""fugu-workloads: three market days with the default configuration (figures 7, 8)."""

import numpy as np

from spillway.cluster.scaling.policy import ScalingSettings
from spillway_lab.experiments.fugu.market import DAYS
from spillway_lab.experiments.fugu.runs import Job
from spillway_lab.experiments.fugu.summaries import (
    LEAST_USE,
    SAME,
    Summaries,
    clearly_less,
    mean,
    pictures_of,
    results_of,
    run_jobs,
    seeds_of,
    spread,
    spread_table,
    tables_of,
)
from spillway_lab.experiments.report import Check, Experiment, Report, Setup


def workloads(setup: Setup) -> Report:
    jobs = {
        (policy, day): [Job(policy=policy, day=day, seed=s) for s in seeds_of(setup)]
        for policy in ("local thresholds", "Sarsa", "true rate")
        for day in DAYS
    }
    found = run_jobs(jobs, setup)
    return Report(
        experiment="fugu-workloads",
        setup=setup,
        results=results_of(found),
        checks=[steadiness_check(found)],
        tables=[*tables_of(found), spread_table(found)],
        pictures=pictures_of(found, "three market days"),
    )


def steadiness_check(found: Summaries) -> Check:
    """`found["Sarsa"]` against local thresholds; with as many idle hosts anybody is steady."""
    local_s, sarsa_s = (spread(found[p]).p90_delay_s for p in ("local thresholds", "Sarsa"))
    use = float(np.mean([mean(runs)["utilisation_mean"] for runs in found["Sarsa"].values()]))
    enough = use >= LEAST_USE * ScalingSettings().target
    return Check(
        name="learning varies less in latency over the days than local thresholds",
        paper="day 2 nearly twice day 1 for local thresholds; Sarsa more stable",
        here=f"p90 differs by {local_s.mean():.2f} s (local) and {sarsa_s.mean():.2f} s (Sarsa),"
        f" whose utilisation is {use:.2f}",
        holds=clearly_less(sarsa_s, local_s) and enough,
        why_not=SAME if enough else f"utilisation below {LEAST_USE:g} of the target: idle hosts",
    )


EXPERIMENTS = (
    Experiment(
        name="fugu-workloads",
        title="three market days with the default configuration",
        source="FUGU 2014, fig. 7, 8",
        run=workloads,
    ),
)

"""fugu-workloads: three market days with the default configuration (figures 7, 8)."""

from spillway_lab.experiments.fugu.market import DAYS
from spillway_lab.experiments.fugu.runs import Job
from spillway_lab.experiments.fugu.summaries import (
    SAME,
    clearly_less,
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
    local_s, sarsa_s = (spread(found[p]).p90_delay_s for p in ("local thresholds", "Sarsa"))
    worst_s = max(sarsa_s.mean(), 1e-9)
    steadier = Check(
        name="learning varies less in latency over the days than local thresholds",
        paper="day 2 nearly twice day 1 for local thresholds; Sarsa more stable",
        here=f"p90 differs by {local_s.mean():.2f} s (local) and {worst_s:.2f} s (Sarsa)",
        holds=clearly_less(sarsa_s, local_s),
        why_not=SAME,
    )
    return Report(
        experiment="fugu-workloads",
        setup=setup,
        results=results_of(found),
        checks=[steadier],
        tables=[*tables_of(found), spread_table(found)],
        pictures=pictures_of(found, "three market days"),
    )


EXPERIMENTS = (
    Experiment(
        name="fugu-workloads",
        title="three market days with the default configuration",
        source="FUGU 2014, fig. 7, 8",
        run=workloads,
    ),
)

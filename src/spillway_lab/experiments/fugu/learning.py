"""fugu-learning: how fast and how long the tables learn (figure 9)."""

from collections.abc import Mapping

from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway_lab.experiments.fugu.runs import Job
from spillway_lab.experiments.fugu.summaries import (
    IDLER,
    LEAST_USE,
    SAME,
    mean,
    pictures_of,
    results_of,
    run_jobs,
    seeds_of,
    tables_of,
)
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

CONSTANT = "reward always 1"  # what remains is the penalty
LEARNING: Mapping[str, Learning] = {
    "no learning": Learning(imp=0.0),
    "default": Learning(imp=0.2, dur=80.0),
    "more intensive": Learning(imp=0.5, dur=80.0),
    "longer": Learning(imp=0.2, dur=160.0),
    "refused scale out punished": Learning(imp=0.2, dur=80.0, punish_scale_out=True),
}


def learning(setup: Setup) -> Report:
    jobs = {
        ("Sarsa", label): [Job(policy="Sarsa", learning=one, seed=s) for s in seeds_of(setup)]
        for label, one in LEARNING.items()
    }
    jobs["Sarsa", CONSTANT] = [Job(policy="constant Sarsa", seed=s) for s in seeds_of(setup)]
    found = run_jobs(jobs, setup)
    return Report(
        experiment="fugu-learning",
        setup=setup,
        results=results_of(found),
        checks=checks_of({label: mean(runs) for label, runs in found["Sarsa"].items()}),
        tables=tables_of(found),
        pictures=pictures_of(found, "learning settings, first day"),
    )


def checks_of(figures: Mapping[str, Mapping[str, float]]) -> list[Check]:
    off, on = figures["no learning"], figures["default"]
    late_s = {label: one["delay_p90_s"] for label, one in figures.items()}
    return [
        Check(
            name="learning from the reward lowers the latency",
            paper="90th percentile 2.1 s without, 1.7 s with learning",
            here=f"{off['delay_p90_s']:.2f} s without, {on['delay_p90_s']:.2f} s with,"
            f" {late_s[CONSTANT]:.2f} s with a reward that is always 1",
            holds=on["delay_p90_s"] < min(off["delay_p90_s"], late_s[CONSTANT])
            and on["utilisation_mean"] >= LEAST_USE * ScalingSettings().target,
            why_not=SAME,
        ),
        Check(
            name="learning raises the utilisation",
            paper="0.55 without, 0.58 with learning",
            here=f"{off['utilisation_mean']:.3f} without, {on['utilisation_mean']:.3f} with",
            holds=on["utilisation_mean"] > off["utilisation_mean"],
            why_not=IDLER,
        ),
        Check(
            name="faster and longer learning are both worse than the default",
            paper="lower utilisation and higher latency for imp 0.5 and for dur 160",
            here=", ".join(
                f"{label} p90 {late_s[label]:.2f} s"
                for label in ("default", "more intensive", "longer")
            ),
            holds=min(late_s["more intensive"], late_s["longer"]) > late_s["default"],
            note="the values in the tables differ, the order of the actions does not: one refused"
            " release flips a row at any of these rates, and nothing else flips one",
        ),
    ]


EXPERIMENTS = (
    Experiment(
        name="fugu-learning",
        title="impact and duration of the learning",
        source="FUGU 2014, fig. 9",
        run=learning,
    ),
)

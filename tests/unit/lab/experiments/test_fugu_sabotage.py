"""Sabotaged scalers fail the checks of the experiments."""

import pytest

from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway_lab.experiments.fugu.learning import CONSTANT, LEARNING, checks_of
from spillway_lab.experiments.fugu.runs import Job, run_job, scaler_of
from spillway_lab.experiments.fugu.steps import one_step_check, step_workload
from spillway_lab.experiments.fugu.workloads import steadiness_check
from spillway_lab.simulated_cluster.run import run_scaling

DAYS = ("day1", "day3")
SEEDS = (1, 2)


def judged(policy: str, seed: int) -> bool:
    workload, _ = step_workload(seed)
    run = run_scaling(workload, scaler_of(policy, ScalingSettings(), Learning()))
    return one_step_check(run).holds


@pytest.mark.parametrize("seed", [1, 4])
def test_an_idle_scaler_fails_the_load_steps_and_the_one_step_scaler_passes(seed: int) -> None:
    assert not judged("idle", seed)
    assert judged("true rate", seed)


def over_days(policy: str) -> dict[str, list[dict[str, float]]]:
    return {
        day: [run_job(Job(policy=policy, day=day, seed=s)).summary() for s in SEEDS] for day in DAYS
    }


@pytest.mark.slow
def test_an_idle_scaler_fails_the_three_days() -> None:
    idle, local = over_days("idle"), over_days("local thresholds")
    assert not steadiness_check({"local thresholds": local, "Sarsa": idle}).holds


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["constant Sarsa", "flipped Sarsa"])
def test_a_reward_that_says_nothing_or_the_opposite_fails_the_learning(policy: str) -> None:
    sabotaged = run_job(Job(policy=policy)).summary()
    figures = dict.fromkeys(LEARNING, sabotaged)
    off = Job(policy="Sarsa", learning=LEARNING["no learning"])
    figures["no learning"] = run_job(off).summary()
    figures[CONSTANT] = run_job(Job(policy="constant Sarsa")).summary()
    assert not checks_of(figures)[0].holds


@pytest.mark.slow
def test_an_idle_scaler_fails_the_learning() -> None:
    idle = run_job(Job(policy="idle")).summary()
    figures = {label: {**idle, "delay_p90_s": 9.0} for label in (*LEARNING, CONSTANT)}
    assert not checks_of(figures | {"default": idle})[0].holds

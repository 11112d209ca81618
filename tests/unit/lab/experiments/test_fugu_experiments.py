"""Market days and the experiments on the simulated cluster, in small."""

import numpy as np
import pytest

from spillway.cluster.actions import StopNode
from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway_lab.experiments.fugu.market import (
    MINUTES,
    SECTORS,
    generated_bars,
    market_workload,
    recorded_bars,
    recording,
)
from spillway_lab.experiments.fugu.runs import POLICIES, scaler_of
from spillway_lab.experiments.fugu.steps import HOLD_S, decisions_per_step, step_workload
from spillway_lab.simulated_cluster.cluster import SimCluster
from spillway_lab.simulated_cluster.run import run_scaling
from spillway_lab.simulated_cluster.workload import ClusterWorkload


def shape(bars: np.ndarray) -> dict[str, float]:
    total = bars.sum(axis=1)
    pairs = np.corrcoef(bars.T)[np.triu_indices(SECTORS, 1)]
    return {
        "mean": total.mean(),
        "variation": total.std() / total.mean(),
        "sector variation": (bars.std(axis=0) / bars.mean(axis=0)).mean(),
        "correlation of sectors": pairs.mean(),
        "correlation of minutes": np.corrcoef(total[1:], total[:-1])[0, 1],
    }


def test_generated_days_have_the_shape_of_the_recorded_one() -> None:
    path = recording()
    if path is None:
        pytest.skip("no recorded market day: ../shared/traces is absent")
    recorded = shape(recorded_bars(path))
    days = [shape(generated_bars(np.random.default_rng(seed))) for seed in range(6)]
    for what, value in recorded.items():
        assert np.mean([day[what] for day in days]) == pytest.approx(value, rel=0.2), what


def test_a_nervous_day_has_larger_bursts() -> None:
    calm = shape(generated_bars(np.random.default_rng(1), 0.8))
    nervous = shape(generated_bars(np.random.default_rng(1), 1.3))
    assert nervous["variation"] > 1.2 * calm["variation"]


def test_days_without_a_recording_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_SHARED", "/nowhere")
    assert recording() is None
    workload = market_workload("day1", seed=1)
    assert workload.queries == 35
    assert workload.steps == 3600
    assert MINUTES == 510


def first_minutes(workload: ClusterWorkload, steps: int) -> ClusterWorkload:
    return ClusterWorkload(
        step_s=workload.step_s,
        offered=workload.offered[:steps],
        passing=workload.passing[:steps],
        window_s=workload.window_s,
        cost_s=workload.cost_s,
    )


@pytest.mark.parametrize("seed", [4, 7])
def test_the_one_step_scaler_needs_at_most_two_decisions_per_load_step(seed: int) -> None:
    workload, levels = step_workload(seed)
    settings = ScalingSettings()
    few = first_minutes(workload, 4 * HOLD_S)
    run = run_scaling(few, scaler_of("true rate", settings, Learning()))
    assert decisions_per_step(run).max() <= 2
    wanted_hosts = levels[:4].max() / settings.target
    assert run.hosts.max() >= wanted_hosts - 1.0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_repeatable_and_every_operator_stays_on_a_host(policy: str) -> None:
    workload = first_minutes(market_workload("day2", seed=5), 200)
    runs = []
    for _ in range(2):
        cluster = SimCluster(workload)
        scaler = scaler_of(policy, ScalingSettings(), Learning())
        seen = []
        while not cluster.done:
            cluster.advance(5.0)
            view = cluster.observe()
            actions = scaler.tick(view)
            cluster.actuate(actions)
            assert len(view.operators) == 3 * workload.queries
            assert all(action.reason for action in actions)
            stopped = {action.node for action in actions if isinstance(action, StopNode)}
            assert len(stopped) < len(view.running)
            seen.append((view.time_s, tuple(host.utilisation for host in view.hosts)))
        runs.append(seen)
    assert runs[0] == runs[1]

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.hosts.virtual.machine import BatchCost
from spillway.load.laws import make
from spillway.model import Target
from spillway_lab.engine.microbatch import MicroBatchPlant, Query
from spillway_lab.engine.run import Run, simulate, simulate_classes
from spillway_lab.engine.statistics import Floats
from spillway_lab.engine.steps import Disturbances, Steps

TWO_SECONDS = Target(delay_s=2.0)
LINEAR = BatchCost(fixed_s=0.25, kept_s=1e-3)


def even(rate_per_s: float, duration_s: float) -> Floats:
    return (np.arange(int(rate_per_s * duration_s)) + 0.5) / rate_per_s


def run(law: str, rate_per_s: float, cost: BatchCost = LINEAR, duration_s: float = 60.0) -> Run:
    plant = MicroBatchPlant(
        Query(cost=cost), even(rate_per_s, duration_s), target=TWO_SECONDS, seed=3
    )
    return simulate(plant, make(law), duration_s, 1.0)


def test_batches_settle_where_they_take_as_long_as_they_collect() -> None:
    """D = o + c r D, so D = o / (1 - c r); a tuple waits D/2 on average and then takes D."""
    settled = run("none", 500.0)
    length_s = 0.25 / (1.0 - 0.5)
    assert np.nanmean(settled.delay_s[20:]) == pytest.approx(1.5 * length_s, rel=0.05)
    assert settled.loss_ratio == 0.0


def test_overload_grows_without_bound_when_nobody_sheds() -> None:
    growing = run("none", 1500.0)
    assert np.nanmax(growing.delay_s) > 10.0


def test_the_predictive_law_reaches_the_mean_target_at_the_oracles_goodput() -> None:
    """D = 2y/3 and (1 - o/D)/c tuples per second."""
    shed = run("predictive", 2000.0)
    oracle_per_s = (1.0 - 0.25 / (4.0 / 3.0)) / 1e-3
    assert np.nanmean(shed.delay_s[20:]) <= 2.1
    assert shed.completed[20:].mean() == pytest.approx(oracle_per_s, rel=0.05)


@pytest.mark.parametrize("law", ["ctrl", "seamless", "dissp", "fixed"])
def test_laws_of_a_control_period_work_on_batches_too(law: str) -> None:
    shed = run(law, 2000.0)
    assert 0.2 < shed.loss_ratio < 0.9
    assert shed.totals.balanced


def test_the_fresh_policy_keeps_younger_tuples() -> None:
    delays = {}
    for policy in ("uniform", "fresh"):
        query = Query(cost=LINEAR, policy=policy)  # type: ignore[arg-type]
        plant = MicroBatchPlant(query, even(2000.0, 30.0), target=TWO_SECONDS)
        delays[policy] = simulate(plant, make("fixed", keep_fraction=0.3), 30.0, 1.0).mean_delay_s
    assert delays["fresh"] < 0.8 * delays["uniform"]


def test_pauses_noise_drift_and_curvature_each_lengthen_batches() -> None:
    rng = np.random.default_rng(1)

    def mean_s(cost: BatchCost) -> float:
        return float(np.mean([cost.duration_s(1000, 1000, 0.0, 1.0, rng) for _ in range(4000)]))

    base = mean_s(LINEAR)
    assert base == pytest.approx(1.25)
    assert mean_s(BatchCost(fixed_s=0.25, kept_s=1e-3, warm_up=1.0)) == pytest.approx(2.5)
    assert mean_s(BatchCost(fixed_s=0.25, kept_s=1e-3, curvature_s=1e-7)) == pytest.approx(1.35)
    assert mean_s(BatchCost(fixed_s=0.25, kept_s=1e-3, noise=0.3)) == pytest.approx(1.25, rel=0.03)
    paused = BatchCost(fixed_s=0.25, kept_s=1e-3, pause_s=1.0, pauses_per_s=0.1)
    chance = 1.0 - np.exp(-0.125)
    assert mean_s(paused) == pytest.approx(1.25 + chance, rel=0.05)


def test_several_queries_share_the_cores() -> None:
    queries = [Query(name=f"q{i}", class_name=f"q{i}", cost=LINEAR) for i in range(4)]
    arrivals = {query.name: even(200.0, 30.0) for query in queries}
    mean_s = {}
    for cores in (1, 4):
        plant = MicroBatchPlant(queries, arrivals, target=TWO_SECONDS, cores=cores)
        laws = {query.name: make("none") for query in queries}
        runs = simulate_classes(plant, laws, 30.0, 1.0)
        mean_s[cores] = float(np.mean([r.mean_delay_s for r in runs.values()]))
        assert all(r.totals.balanced for r in runs.values())
    assert mean_s[4] < 0.5 * mean_s[1]


def test_a_background_job_slows_batches_down() -> None:
    background = Steps(times_s=[30.0], values=[0.5], before=0.0)
    plant = MicroBatchPlant(
        Query(cost=LINEAR),
        even(300.0, 60.0),
        target=TWO_SECONDS,
        disturbances=Disturbances(background=background),
    )
    slowed = simulate(plant, make("none"), 60.0, 1.0)
    assert np.nanmean(slowed.delay_s[45:]) > 2.0 * np.nanmean(slowed.delay_s[10:30])


def test_the_same_seed_gives_the_same_run_bit_for_bit() -> None:
    noisy = BatchCost(fixed_s=0.25, kept_s=1e-3, noise=0.2, pause_s=0.5, pauses_per_s=0.05)
    first, second = (run("predictive", 1500.0, noisy) for _ in range(2))
    np.testing.assert_array_equal(first.delay_s, second.delay_s)
    np.testing.assert_array_equal(first.shed, second.shed)


def test_a_negative_cost_is_refused() -> None:
    with pytest.raises(SpillwayError, match=r"kept_s of a micro-batch is -1\.0"):
        BatchCost(kept_s=-1.0)

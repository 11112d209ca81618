"""What a run of load steps is worth is judged by its batches and its executors alone."""

from dataclasses import replace

import numpy as np
import pytest

from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway_lab.benchmarks.executors import failures_of
from spillway_lab.benchmarks.executors_judged import Phase, Steps

PHASES = tuple(
    Phase(rate_per_s=rate, from_s=from_s, to_s=to_s)
    for rate, from_s, to_s in ((1000.0, 0.0, 20.0), (3000.0, 20.0, 100.0), (1000.0, 100.0, 140.0))
)
COST_S = 1.5e-3


def batch(ended_s: float, delay_s: float = 2.0, kept: int = 1000) -> DeliveredBatch:
    return DeliveredBatch(
        gate="q/s",
        seq=1,
        ended_s=ended_s,
        duration_s=1.0,
        offered_tuples=1000,
        kept_tuples=kept,
        mean_delay_s=delay_s,
        quantile_delays_s=np.zeros(4),
    )


def steps(
    *, bad_from_s: float = 20.0, bad_to_s: float = 50.0, decided_s: tuple[float, ...] = (30.0,)
) -> Steps:
    return Steps(
        phases=PHASES,
        batches=[
            batch(float(s), kept=400 if bad_from_s < s <= bad_to_s else 1000) for s in range(1, 141)
        ],
        counts=[(-10.0, 2), (40.0, 5), (110.0, 2)],
        decided_s=decided_s,
        target_s=5.0,
        cost_s=COST_S,
    )


def test_the_target_holds_again_when_nothing_is_shed_any_more() -> None:
    seen = steps()
    assert seen.settle_s() == pytest.approx(30.0, abs=5.0)
    assert seen.holds()
    assert seen.shed_tuples() == 30 * 600


def test_a_target_that_is_held_by_shedding_alone_does_not_hold() -> None:
    seen = steps(bad_to_s=140.0)
    assert seen.settle_s() is None
    assert not seen.holds()


def test_a_target_that_is_missed_once_the_load_has_fallen_does_not_hold() -> None:
    assert not steps(bad_from_s=100.0, bad_to_s=135.0).holds()


def test_decisions_count_after_the_step_that_they_follow() -> None:
    assert steps(decided_s=(5.0, 30.0, 40.0, 110.0)).decisions() == [2, 1]
    assert steps(decided_s=()).decisions() == [0, 0]


def test_executor_seconds_are_those_that_were_there_and_the_least_those_of_the_tuples_alone() -> (
    None
):
    seen = steps()
    assert seen.executor_s() == pytest.approx(2 * 40 + 5 * 70 + 2 * 30)
    assert seen.least_executor_s() == pytest.approx(2 * 20 + 5 * 80 + 2 * 40)


def test_a_scaler_that_idles_hurries_or_hoards_fails() -> None:
    fine = steps(decided_s=(30.0, 105.0))
    assert failures_of(fine) == []
    idle = failures_of(steps(decided_s=(), bad_to_s=140.0))
    assert "decided [0, 0] times" in idle[0]
    assert "did not hold" in idle[1]
    assert "decided [3, 1] times" in failures_of(steps(decided_s=(30.0, 34.0, 38.0, 105.0)))[0]
    hoard = replace(fine, counts=[(-10.0, 8)])
    assert "executor seconds" in failures_of(hoard)[0]

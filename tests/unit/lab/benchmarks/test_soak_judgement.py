"""What the soak and isolation benchmarks would complain about."""

from typing import Any

import numpy as np
import pytest

from spillway.logs.rates import parse_rates
from spillway_lab.benchmarks import isolation, soak
from spillway_lab.benchmarks.flow_runs import ClassFigures
from spillway_lab.benchmarks.memory import resident_mb


def test_random_rates_are_a_profile_that_the_synthetic_log_takes() -> None:
    text = soak.random_rates(1_000, 120.0, np.random.default_rng(1))
    times_s, rates = parse_rates(text)
    assert times_s[-1] >= 120.0
    assert rates.max() >= 2_000
    assert text == soak.random_rates(1_000, 120.0, np.random.default_rng(1))


def class_figures(**changed: Any) -> dict[str, Any]:
    usual = {"mean_delay_of_halves_s": [1.0, 1.1], "longest_gap_s": 2.0}
    return {name: {**usual, **changed} for name in soak.CLASSES}


def test_a_steady_run_has_nothing_to_complain_about() -> None:
    assert soak._failures(class_figures(), {"driver": 3.0, "heap": -5.0}, {"q": 0}) == []


@pytest.mark.parametrize(
    ("changed", "growth", "restarts", "said"),
    [
        ({}, {"planners": 300.0}, {}, "planners grew by 300 MB"),
        ({}, {}, {"gold_totals": 2}, "restarted 2 times"),
        ({"mean_delay_of_halves_s": [1.0, 9.0]}, {}, {}, "drifted from 1.00 to 9.00 s"),
        ({"mean_delay_of_halves_s": [1.0, None]}, {}, {}, "delivered nothing"),
        ({"longest_gap_s": 60.0}, {}, {}, "no batch for 60.0 s"),
    ],
)
def test_leaks_restarts_drift_and_starvation_are_named(
    changed: dict[str, Any], growth: dict[str, float], restarts: dict[str, int], said: str
) -> None:
    assert any(
        said in failure for failure in soak._failures(class_figures(**changed), growth, restarts)
    )


def test_growth_compares_the_end_with_the_time_after_warming_up() -> None:
    samples = [{"driver": 100.0 + i} for i in range(50)]
    assert soak._growth_mb(samples)["driver"] == pytest.approx(30.0)


def test_the_memory_of_this_process_is_seen() -> None:
    assert resident_mb()["driver"] > 10.0


def seen(**changed: Any) -> ClassFigures:
    usual: dict[str, Any] = {
        "within_target_ratio": 1.0,
        "shed_tuples": 0,
        "offered_tuples": 100,
        "mean_delay_s": 1.0,
        "p99_delay_s": 1.0,
        "kept_per_s": 1.0,
        "batches": 1,
        "mean_batch_s": 1.0,
        "busy_ratio": 1.0,
        "longest_gap_s": 1.0,
    }
    return ClassFigures(**{**usual, **changed})


def test_isolation_asks_for_a_burst_that_overloads_and_a_first_class_that_does_not_notice() -> None:
    bronze = seen(shed_tuples=10)
    assert isolation._failures({"gold": seen(), "bronze": bronze}) == []
    late = isolation._failures({"gold": seen(within_target_ratio=0.99), "bronze": bronze})
    lost = isolation._failures({"gold": seen(shed_tuples=1), "bronze": bronze})
    idle = isolation._failures({"gold": seen(), "bronze": seen()})
    assert [len(late), len(lost), len(idle)] == [1, 1, 1]

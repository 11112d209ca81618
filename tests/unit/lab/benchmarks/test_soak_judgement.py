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
    usual = {
        "mean_delay_of_halves_s": [1.0, 1.1],
        "longest_gap_s": 2.0,
        "within_target_ratio": 1.0,
        "offered_tuples": 100,
        "shed_tuples": 3,
        "p99_delay_s": 1.5,
    }
    return {name: {**usual, **changed} for name in soak.CLASSES}


def memory(**grown_mb: float) -> list[dict[str, float]]:
    """Samples of a run in which these have grown so much, evenly, from its second fifth on."""
    steps = np.clip((np.arange(50) - 15) / 20.0, 0.0, 1.0)
    usual = {"driver": 0.0, "planners": 0.0, "workers": 0.0}
    return [{n: 200.0 + g * step for n, g in {**usual, **grown_mb}.items()} for step in steps]


def complaints(
    figures: dict[str, Any] | None = None,
    samples: list[dict[str, float]] | None = None,
    heap_growth_mb: float = -5.0,
    restarts: int = 0,
) -> tuple[str, ...]:
    classes, restarted = figures or class_figures(), {"gold_totals": restarts}
    return soak.judged(classes, samples or memory(), heap_growth_mb, restarted).failures


def test_a_steady_run_has_nothing_to_complain_about() -> None:
    assert complaints() == ()
    assert complaints(samples=memory(planners=30.0), heap_growth_mb=40.0) == ()


@pytest.mark.parametrize("role", ["driver", "planners", "workers"])
def test_a_process_that_grows_is_named(role: str) -> None:
    [said] = complaints(samples=memory(**{role: 300.0}))
    assert f"{role} grew by 300 MB" in said


def test_a_heap_that_grows_and_a_query_that_was_restarted_are_named() -> None:
    grown, restarted = complaints(heap_growth_mb=200.0, restarts=2)
    assert "heap grew by 200 MB" in grown
    assert "gold_totals was restarted 2 times" in restarted


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mean_delay_of_halves_s": [1.0, 9.0]}, "drifted from 1.00 to 9.00 s"),
        ({"mean_delay_of_halves_s": [1.0, None]}, "delivered nothing"),
        ({"longest_gap_s": 60.0}, "no batch for 60.0 s"),
    ],
)
def test_drift_and_starvation_are_named_class_by_class(changed: dict[str, Any], said: str) -> None:
    found = complaints(class_figures(**changed))
    assert len(found) == len(soak.CLASSES)
    assert all(said in complaint for complaint in found)


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

"""The oracles: closed forms against a search over all lengths."""

import numpy as np
import pytest

from spillway.load import oracle
from spillway.model import Target


def fresh_by_search(rate_per_s: float, target: Target, overhead_s: float, cost_s: float) -> float:
    """The best of all lengths whose freshest tuples meet the target."""
    share = 0.5 if target.quantile is None else target.quantile
    lengths_s = np.linspace(overhead_s, target.delay_s, 200_001)[1:]
    fractions = np.minimum(1.0, (1.0 - overhead_s / lengths_s) / (rate_per_s * cost_s))
    feasible = lengths_s * (1.0 + share * fractions) <= target.delay_s
    return float((fractions * rate_per_s)[feasible].max())


@pytest.mark.parametrize("text", ["2s", "1s", "p95 2s", "p99 1s"])
@pytest.mark.parametrize("overload", [1.2, 2.0, 8.0])
def test_freshest_first_agrees_with_a_search(text: str, overload: float) -> None:
    target, cost_s = Target.parse(text), 1e-3
    found = oracle.fresh_rate_per_s(overload / cost_s, target, 0.245, cost_s)
    best = fresh_by_search(overload / cost_s, target, 0.245, cost_s)
    assert found == pytest.approx(best, rel=1e-3)


def test_the_gain_of_freshest_first_is_that_of_the_design() -> None:
    for overhead_s, target, gain in (
        (0.245, Target(delay_s=2.0), 0.04),
        (0.44, Target(delay_s=1.0), 0.48),
    ):
        uniform = oracle.uniform_rate_per_s(2000.0, target, overhead_s, 1e-3)
        fresh = oracle.fresh_rate_per_s(2000.0, target, overhead_s, 1e-3)
        assert fresh / uniform - 1.0 == pytest.approx(gain, abs=0.02)


def test_a_mean_target_asks_for_batches_of_two_thirds() -> None:
    assert oracle.uniform_length_s(Target(delay_s=3.0)) == pytest.approx(2.0)
    assert oracle.uniform_length_s(Target.parse("p95 3.9s")) == pytest.approx(2.0)


def test_nothing_beats_the_bound_and_nothing_exceeds_what_is_offered() -> None:
    target = Target(delay_s=2.0)
    for rate_per_s in (100.0, 1000.0, 3000.0):
        uniform = oracle.uniform_rate_per_s(rate_per_s, target, 0.3, 1e-3)
        fresh = oracle.fresh_rate_per_s(rate_per_s, target, 0.3, 1e-3)
        bound = oracle.bound_rate_per_s(rate_per_s, target, 0.3, 1e-3)
        assert uniform <= fresh + 1e-9
        assert fresh <= bound + 1e-9
        assert bound <= rate_per_s


def test_an_overhead_beyond_the_target_leaves_nothing_to_keep() -> None:
    assert oracle.uniform_rate_per_s(1000.0, Target(delay_s=1.0), 0.7, 1e-3) == 0.0


def test_scanning_takes_its_share_of_every_second() -> None:
    target, rate_per_s = Target(delay_s=1.5), 4000.0
    free = oracle.uniform_rate_per_s(rate_per_s, target, 0.25, 1e-3)
    scanning = oracle.uniform_rate_per_s(rate_per_s, target, 0.25, 1e-3, scan_s=5e-5)
    assert free - scanning == pytest.approx(200.0)  # 0.2 s a second at 1 ms a tuple


def test_of_nothing_nothing_is_kept() -> None:
    target = Target(delay_s=2.0)
    for kept in (oracle.fresh_rate_per_s, oracle.uniform_rate_per_s, oracle.bound_rate_per_s):
        assert kept(0.0, target, 0.3, 1e-3) == 0.0

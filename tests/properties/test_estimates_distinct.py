"""Distinct keys after shedding by key: right on average, whatever the keys and the decisions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.estimates.numbers import distinct
from spillway_lab.benchmarks.estimates import Z
from spillway_lab.benchmarks.estimates_keys import GROUPS, Keyed, estimated_keys

SEEDS = 40


@settings(max_examples=6, deadline=None)
@given(stream=st.integers(0, 10_000), fraction=st.sampled_from([0.15, 0.3, 0.6, 0.9]))
def test_the_mean_over_many_draws_is_the_truth_and_bounds_hold(
    stream: int, fraction: float
) -> None:
    rng = np.random.default_rng(stream)
    window = Keyed.draw(rng)
    found = [estimated_keys(window, fraction, stream + i, rng, Z)[0] for i in range(SEEDS)]
    relative = np.array([f.estimate for f in found]) / window.truth - 1.0
    error = relative.std(axis=0) / SEEDS**0.5
    assert (np.abs(relative.mean(axis=0)) <= 5.0 * error + 0.01).all()
    inside = [
        (f.low - 1e-6 <= window.truth) & (window.truth <= f.high + 1e-6)
        for f in found
        if not np.isnan(f.low).any()
    ]
    assert not inside or np.mean(inside) > 0.8


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=200))
def test_without_shedding_the_count_is_exact(tuples: list[tuple[int, int]]) -> None:
    group, key = np.array(tuples).T
    found = distinct(group, GROUPS, key, np.ones(len(key)), Z)
    for number in set(group.tolist()):
        truth = len(set(key[group == number].tolist()))
        assert found.estimate[number] == found.low[number] == found.high[number] == truth


def test_a_key_counts_by_the_largest_limit_that_it_met() -> None:
    key = np.repeat(np.arange(30), 2)
    weight = np.tile([4.0, 2.0], 30)
    found = distinct(np.zeros(60, dtype=np.int64), 1, key, weight, Z)
    assert found.estimate[0] == 60.0
    assert found.low[0] < 60.0 < found.high[0]

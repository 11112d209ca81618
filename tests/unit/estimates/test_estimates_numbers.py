"""The formulas alone: exact where nothing was shed, silent where too little was seen."""

import numpy as np
import pytest
from scipy.stats import t as student_t

from spillway.estimates.numbers import LEAST_KEPT, Estimates, estimates, student, sums
from spillway.gate.sampling import UniformRule, kept_positions

Z = 1.959964


def of_one_group(weights: np.ndarray, values: np.ndarray, places: np.ndarray) -> Estimates:
    return estimates(sums(np.zeros(len(values), dtype=np.int64), 1, weights, values, places), Z)


def test_without_shedding_estimates_are_exact_however_few_the_tuples() -> None:
    found = of_one_group(np.ones(3), np.array([1.0, 2.0, 6.0]), np.arange(3))
    for bounded, truth in ((found.count, 3.0), (found.sum, 9.0), (found.avg, 3.0)):
        assert bounded.estimate[0] == bounded.low[0] == pytest.approx(truth)
        assert bounded.high[0] == pytest.approx(truth)


def test_too_few_tuples_get_an_estimate_but_no_bounds() -> None:
    few = LEAST_KEPT - 1
    found = of_one_group(np.full(few, 4.0), np.ones(few), np.arange(few) * 4)
    assert found.count.estimate[0] == 4.0 * few
    assert np.isnan(found.count.low[0])
    assert np.isnan(found.sum.high[0])


def test_a_group_that_is_the_whole_stream_is_counted_almost_exactly() -> None:
    kept = np.arange(0, 20_000, 4)
    alone = of_one_group(np.full(5000, 4.0), np.ones(5000), kept)
    sparse = of_one_group(np.full(5000, 4.0), np.ones(5000), kept * 50)
    assert alone.count.high[0] - alone.count.low[0] < 0.01 * 20_000
    assert sparse.count.high[0] - sparse.count.low[0] > 800


def test_a_window_that_begins_and_ends_inside_blocks_counts_its_stream_within_the_bounds() -> None:
    rng, tuples, inside = np.random.default_rng(1), 12_000, 0
    for seed in range(200):
        start, rule = int(rng.integers(10**7)), UniformRule(keep_ppm=300_000, seed=seed)
        kept = kept_positions(start, start + tuples, rule)
        found = of_one_group(np.full(len(kept), 1 / 0.3), np.ones(len(kept)), kept).count
        inside += int(found.low[0] <= tuples <= found.high[0])
    assert inside >= 185


def test_bounds_of_a_negative_sum_are_in_order() -> None:
    rng = np.random.default_rng(1)
    found = of_one_group(np.full(100, 3.0), rng.normal(-5.0, 1.0, 100), np.arange(100) * 30)
    assert found.sum.low[0] < found.sum.estimate[0] < found.sum.high[0] < 0.0


@pytest.mark.parametrize("degrees", [5, 10, 30, 200])
def test_the_series_for_student_s_quantile_is_close(degrees: int) -> None:
    assert student(Z, degrees) == pytest.approx(student_t.ppf(0.975, degrees), rel=0.01)


def test_certain_tuples_add_nothing_to_the_width_of_a_count() -> None:
    thinned, places = np.full(40, 4.0), np.arange(40) * 5000
    alone = of_one_group(thinned, np.ones(40), places)
    weights = np.concatenate([np.ones(1000), thinned])
    places = np.concatenate([np.arange(1000) * 5000, places + 5_000_000])
    mixed = of_one_group(weights, np.ones(1040), places)
    widths = [found.count.high[0] - found.count.low[0] for found in (alone, mixed)]
    assert widths[1] == pytest.approx(widths[0], rel=0.02)
    assert mixed.count.low[0] > 1040

"""Delays of many batches as one statistic, against the tuples themselves."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spillway.gate.delays import delay_s, delays_of, excess, quantile_s
from spillway.gate.offsets import Arrived
from spillway.model import DELAY_SHARES, Delays, Target

MEAN, P95, P99 = (Target(delay_s=1.0, statistic=s) for s in ("mean", "p95", "p99"))
POINTS = 4_000  # that stand for the tuples of a batch


def spread(*quantiles_s: float, tuples: int = 100) -> Delays:
    """Tuples whose delays run linearly between these."""
    widths = np.diff(DELAY_SHARES)
    mean_s = float(widths @ (np.array(quantiles_s[:-1]) + np.array(quantiles_s[1:])) / 2.0)
    return Delays(tuples=tuples, mean_s=mean_s, quantiles_s=quantiles_s)


def at_once(delay_s: float, tuples: int = 100) -> Delays:
    """Tuples that arrived together."""
    return spread(*(delay_s,) * 4, tuples=tuples)


def evenly(longest_s: float, shortest_s: float, tuples: int = 100) -> Delays:
    quantiles_s = (longest_s + share * (shortest_s - longest_s) for share in DELAY_SHARES)
    return spread(*quantiles_s, tuples=tuples)


def points(delays: Delays) -> npt.NDArray[np.float64]:
    shares = (np.arange(POINTS) + 0.5) / POINTS
    return np.interp(shares, DELAY_SHARES, delays.quantiles_s)


def test_without_tuples_there_is_no_delay() -> None:
    for target in (MEAN, P95, P99):
        assert delay_s([], target) is None
        assert delay_s([at_once(3.0, tuples=0)], target) is None


def test_of_one_batch_the_statistic_is_what_it_says() -> None:
    one = [spread(4.0, 3.0, 2.0, 1.0, tuples=7)]
    assert delay_s(one, P99) == pytest.approx(3.0)
    assert delay_s(one, P95) == pytest.approx(2.0)
    assert delay_s(one, MEAN) == pytest.approx(one[0].mean_s)


def test_batches_count_by_their_tuples() -> None:
    both = [at_once(1.0, tuples=300), at_once(3.0, tuples=100), at_once(9.0, tuples=0)]
    assert delay_s(both, MEAN) == pytest.approx(1.5)


def test_a_quantile_over_equal_batches_is_that_of_each() -> None:
    assert quantile_s([evenly(2.0, 0.0)] * 5, 0.95) == pytest.approx(1.9)


def test_a_small_late_batch_moves_a_quantile_only_as_far_as_its_tuples_reach() -> None:
    """Not to its own delay: of 1000 tuples, 4 are above 1 s, and the 99th is in the large batch."""
    found = quantile_s([evenly(1.0, 0.0, tuples=996), evenly(9.0, 8.0, tuples=4)], 0.99)
    assert found == pytest.approx(1.0 - 6 / 996)


def test_tuples_that_arrived_together_are_late_together() -> None:
    """A tenth of all tuples took 5 s: so do the slowest 5 %, and the slowest 1 %."""
    batches = [evenly(1.0, 0.0, tuples=90), at_once(5.0, tuples=10)]
    assert delay_s(batches, P95) == pytest.approx(5.0)
    assert delay_s(batches, P99) == pytest.approx(5.0)


def test_single_tuples_are_counted_one_by_one() -> None:
    batches = [at_once(float(second), tuples=1) for second in range(1, 101)]
    assert 95.0 <= quantile_s(batches, 0.95) <= 96.0
    assert 99.0 <= quantile_s(batches, 0.99) <= 100.0


def test_a_burst_inside_a_batch_is_late_together() -> None:
    """The oldest 5 % of a batch came at one moment, beside a batch that is fast."""
    batches = [spread(4.0, 4.0, 4.0, 0.0), at_once(0.1)]
    assert quantile_s(batches, 0.98) == pytest.approx(4.0)


STEPS_S = st.sampled_from([0.0, 0.0, 0.25, 1.0]) | st.floats(0.001, 5.0)
BATCHES = st.builds(
    lambda tuples, steps_s: spread(*np.cumsum(steps_s)[::-1].tolist(), tuples=tuples),
    st.integers(1, 1000),
    st.tuples(STEPS_S, STEPS_S, STEPS_S, STEPS_S),
)


@given(batches=st.lists(BATCHES, min_size=1, max_size=6), quantile=st.sampled_from([0.95, 0.99]))
def test_a_quantile_is_that_of_all_the_tuples(batches: list[Delays], quantile: float) -> None:
    found_s = quantile_s(batches, quantile)
    delays_s = np.concatenate([points(d) for d in batches])
    weights = np.repeat([d.tuples / POINTS for d in batches], POINTS)
    wanted, unsure = (1.0 - quantile) * weights.sum(), 2.0 * weights.sum() / POINTS
    assert weights[delays_s > found_s + 1e-9].sum() <= wanted + unsure
    assert weights[delays_s >= found_s - 1e-9].sum() >= wanted - unsure
    longest_s = max(d.quantiles_s[0] for d in batches)
    shortest_s = min(d.quantiles_s[-1] for d in batches)
    assert shortest_s - 1e-9 <= found_s <= longest_s + 1e-9


@given(st.lists(BATCHES, min_size=1, max_size=6))
def test_a_mean_is_that_of_all_the_tuples(batches: list[Delays]) -> None:
    weights = [d.tuples for d in batches]
    truth_s = np.average([points(d).mean() for d in batches], weights=weights)
    assert delay_s(batches, MEAN) == pytest.approx(truth_s, rel=1e-3, abs=1e-3)


@given(batch=BATCHES, bound_s=st.floats(0.0, 15.0))
def test_what_exceeds_a_bound_is_counted_tuple_by_tuple(batch: Delays, bound_s: float) -> None:
    assume(all(abs(at_s - bound_s) > 1e-6 for at_s in batch.quantiles_s))
    over_s = points(batch) - bound_s
    late = over_s > 0.0
    tuples, sum_s = excess(batch, bound_s)
    assert tuples == pytest.approx(late.mean() * batch.tuples, abs=3e-3 * batch.tuples)
    truth_s = over_s[late].sum() / POINTS * batch.tuples
    assert sum_s == pytest.approx(truth_s, abs=0.05 * batch.tuples)


# -- what an offset says of one batch


def arrived(*at_s: float) -> Arrived:
    """Of tuples that arrived at these times."""
    first, p01, p05 = np.quantile(at_s, [0.0, 0.01, 0.05])
    return Arrived(
        mean_us=round(float(np.mean(at_s)) * 1e6),
        p05_us=round(p05 * 1e6),
        p01_us=round(p01 * 1e6),
        first_us=round(first * 1e6),
    )


def test_a_delay_runs_from_arrival_to_the_end_of_the_batch() -> None:
    evenly_s = np.linspace(10.0, 12.0, 201)
    found = delays_of(arrived(*evenly_s), 201, planned_us=12_500_000, ended_s=13.0)
    assert found.tuples == 201
    assert found.mean_s == pytest.approx(2.0)
    assert found.quantiles_s == pytest.approx((3.0, 2.98, 2.9, 1.0))


def test_no_tuple_arrived_after_its_batch_was_planned() -> None:
    """Early stragglers put the mean far from the middle: the newest are not younger than that."""
    found = delays_of(arrived(*[1.0] * 10, *[9.0] * 90), 100, planned_us=9_500_000, ended_s=10.0)
    assert found.quantiles_s[-1] == pytest.approx(0.5)


@pytest.mark.parametrize("ended_s", [0.0, 11.0])
def test_a_clock_that_was_set_back_makes_no_delay_negative(ended_s: float) -> None:
    found = delays_of(arrived(10.0, 11.0, 12.0), 3, planned_us=12_000_000, ended_s=ended_s)
    assert min(found.mean_s, *found.quantiles_s) >= 0.0


@given(
    at_s=st.lists(st.floats(1.0, 100.0), min_size=1, max_size=50),
    planned_s=st.floats(1.0, 120.0),
    ended_s=st.floats(0.0, 130.0),
)
def test_delays_fall_from_the_oldest_tuple_to_the_newest(
    at_s: list[float], planned_s: float, ended_s: float
) -> None:
    """Also when the log's clock is ahead, and tuples seem to come after their batch was planned."""
    found = delays_of(arrived(*at_s), len(at_s), round(planned_s * 1e6), ended_s)
    assert list(found.quantiles_s) == sorted(found.quantiles_s, reverse=True)

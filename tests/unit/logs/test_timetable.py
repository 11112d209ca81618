import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.logs.timetable import (
    CURVE_POINTS,
    Timetable,
    timetable_of_arrivals,
    timetable_of_rates,
)

START_US = 1_800_000_000_000_000
START_S = START_US / 1e6


def rates(*pairs: tuple[float, float], strides: int = 1) -> Timetable:
    times_s, per_s = np.array(pairs).T
    return timetable_of_rates(START_US, times_s, per_s, strides)


def test_a_constant_rate_spaces_arrivals_evenly() -> None:
    table = rates((0.0, 1000.0))
    assert (table.arrival_us(np.arange(3)) - START_US).tolist() == [1000, 2000, 3000]
    assert table.count(START_S) == 0
    assert table.count(START_S + 1.0) == 1000


def test_nothing_arrives_in_a_pause_and_the_stream_goes_on_after_it() -> None:
    table = rates((0.0, 1000.0), (1.0, 0.0), (2.0, 5000.0))
    assert [table.count(START_S + t) for t in (1.0, 1.5, 2.0, 3.0)] == [1000, 1000, 1000, 6000]
    assert (table.arrival_us(np.array([999, 1000])) - START_US).tolist() == [1_000_000, 2_000_200]


def test_a_stream_that_ends_with_rate_zero_ends() -> None:
    assert rates((0.0, 10.0), (1.0, 0.0)).count(START_S + 1e6) == 10


def test_partitions_share_the_stream_tuple_by_tuple() -> None:
    whole, shared = rates((0.0, 300.0)), rates((0.0, 300.0), strides=3)
    merged = np.sort(np.concatenate([shared.arrival_us(np.arange(100), p) for p in range(3)]))
    assert np.array_equal(merged, whole.arrival_us(np.arange(300)))
    now_s = START_S + 0.5
    assert sum(shared.count(now_s, p) for p in range(3)) == whole.count(now_s)


def test_a_loop_repeats_with_its_period() -> None:
    table = timetable_of_arrivals(START_US, np.array([0.0, 0.1, 0.5]), period_s=1.0)
    passed = (table.arrival_us(np.arange(7)) - START_US) / 1e6
    assert passed.tolist() == [0.0, 0.1, 0.5, 1.0, 1.1, 1.5, 2.0]
    assert [table.count(START_S + t) for t in (0.0, 0.6, 1.05, 1.6)] == [1, 3, 4, 6]


def test_a_finite_replay_stops_at_its_last_row() -> None:
    table = timetable_of_arrivals(START_US, np.array([0.0, 0.0, 0.5]), period_s=None)
    assert [table.count(START_S + t) for t in (0.0, 0.4, 0.5, 1e9)] == [2, 2, 3, 3]


def test_a_long_curve_is_thinned_and_still_exact_at_its_points() -> None:
    arrivals_s = np.cumsum(np.random.default_rng(1).random(50_000))
    table = timetable_of_arrivals(START_US, arrivals_s, period_s=None)
    curve = table.curve(100, 40_000)
    assert len(curve.positions) <= CURVE_POINTS
    exact_s = table.arrival_us(curve.positions[1:] - 1) / 1e6
    assert np.array_equal(curve.times_s[1:], exact_s)


@given(
    per_s=st.lists(st.floats(0.0, 5e6), min_size=1, max_size=6).filter(any),
    position=st.integers(0, 10**12),
    chunk=st.integers(1, 50),
)
def test_an_arrival_depends_on_its_position_alone(
    per_s: list[float], position: int, chunk: int
) -> None:
    table = rates(*((10.0 * i, rate) for i, rate in enumerate(per_s)))
    if per_s[-1] == 0.0:
        position = min(position, int(table.tuples[-1]) - chunk)
        if position < 0:
            return
    together = table.arrival_us(np.arange(position, position + chunk))
    alone = [int(table.arrival_us(np.array([position + i]))[0]) for i in range(chunk)]
    assert together.tolist() == alone
    assert (np.diff(together) >= 0).all()


@pytest.mark.parametrize("rate", [0.3, 7.0, 1e3, 3e6])
def test_counting_and_arrivals_agree_at_every_moment(rate: float) -> None:
    table = rates((0.0, rate), (3.0, rate / 7.0))
    for now_s in START_S + np.random.default_rng(2).random(200) * 6.0:
        count = table.count(now_s)
        if count:
            assert table.arrival_us(np.array([count - 1]))[0] <= round(now_s * 1e6)
        assert table.arrival_us(np.array([count]))[0] > round(now_s * 1e6)

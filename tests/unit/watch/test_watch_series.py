"""Curves in bounded memory: nothing that happened is left out of a coarser point."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.watch.series import Series

MERGES = {"offered": "sum", "worst_s": "max", "waiting": "last"}
SHORT = ((1.0, 60), (10.0, 60))


def made() -> Series:
    return Series(MERGES, SHORT)  # type: ignore[arg-type]


def test_counts_are_spread_over_the_time_in_which_they_came() -> None:
    series = made()
    series.add(10.0, 14.0, {"offered": 400.0, "worst_s": 2.0, "waiting": 7.0})
    times_s, found = series.read(10.0, 13.9, 60)
    assert found["offered"].tolist() == [100.0] * 4
    assert math.isnan(found["worst_s"][0])  # a peak and a state stand where they were seen
    assert series.read(14.0, 14.5, 60)[1]["waiting"].tolist() == [7.0]
    assert times_s.tolist() == [11.0, 12.0, 13.0, 14.0]


@given(
    st.lists(
        st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 5.0), st.integers(0, 1000)), max_size=20
    ),
    st.integers(1, 60),
)
def test_the_sum_is_the_same_at_every_resolution(
    told: list[tuple[float, float, int]], points: int
) -> None:
    series = made()
    for at_s, lasted_s, count in told:
        series.add(at_s, at_s + lasted_s, {"offered": float(count), "worst_s": at_s})
    _, found = series.read(0.0, 59.0, points)
    assert np.nansum(found["offered"]) == pytest.approx(sum(count for *_, count in told))
    if told:
        assert np.nanmax(found["worst_s"]) == max(at_s for at_s, *_ in told)


def test_what_is_older_is_kept_coarser() -> None:
    series = made()
    for at_s in range(300):
        series.add(float(at_s), at_s + 1.0, {"offered": 10.0, "worst_s": float(at_s)})
    times_s, found = series.read(0.0, 299.0, 1000)
    assert len(times_s) == 30
    assert np.nansum(found["offered"]) == pytest.approx(3000.0)


def test_points_stay_where_they_are_while_time_goes_on() -> None:
    series = made()
    for at_s in range(50):
        series.add(float(at_s), at_s + 1.0, {"offered": float(at_s)})
    before, early = series.read(10.0, 40.0, 8)
    after, late = series.read(12.0, 42.0, 8)
    shared = np.intersect1d(before[:-1], after[:-1])
    assert len(shared) > 3
    for at_s in shared:
        assert early["offered"][before == at_s] == late["offered"][after == at_s]


def test_a_clock_that_is_set_back_breaks_nothing() -> None:
    series = made()
    series.add(1000.0, 1001.0, {"offered": 1.0})
    series.add(10.0, 11.0, {"offered": 5.0})
    _, found = series.read(990.0, 1001.0, 20)
    assert np.nansum(found["offered"]) == pytest.approx(1.0)

"""Eq. 7.1 and 7.2 of the thesis, with the examples of its figures 34 and 35."""

import pytest

from spillway.cluster.migration.timestamps import (
    activation_ts,
    complete_from_ts,
    time_migration_ts,
    tuple_delta,
    tuples_to_discard,
)
from spillway.errors import SpillwayError


def test_figure_34_migrates_at_3_and_starts_at_5() -> None:
    migration_ts = time_migration_ts([4], last_window_ts=1, slide=2)
    assert migration_ts == 3
    assert activation_ts(migration_ts, slide=2) == 5


def test_a_start_on_a_window_boundary_leaves_the_window_before_it_to_the_origin() -> None:
    assert time_migration_ts([5], last_window_ts=1, slide=2) == 3


def test_a_destination_that_already_has_the_next_window_takes_over_at_once() -> None:
    assert time_migration_ts([1], last_window_ts=1, slide=2) == 1
    assert time_migration_ts([-7], last_window_ts=1, slide=2) == 1


def test_the_latest_of_several_inputs_decides() -> None:
    assert time_migration_ts([4, 9, 2], last_window_ts=1, slide=2) == 7


def test_figure_35_hands_over_two_tuples_before_t_as_eq_7_2_says() -> None:
    # The text of the figure takes the tuple just before t. With a window start every second tuple
    # counted from w21's first one, t (the fourth after it) is itself a start, and so is the second
    # before it; the tuple just before t starts no window.
    assert tuple_delta([3], slide=2) == 2
    assert tuples_to_discard([3], slide=2) == (0,)


@pytest.mark.parametrize(("between", "delta", "discard"), [(0, 1, 2), (1, 2, 1), (2, 3, 0)])
def test_the_destination_discards_up_to_the_next_window_start(
    between: int, delta: int, discard: int
) -> None:
    assert tuple_delta([between], slide=3) == delta
    assert tuples_to_discard([between], slide=3) == (discard,)


def test_an_input_with_fewer_tuples_in_between_discards_the_difference_on_top() -> None:
    assert tuples_to_discard([5, 2], slide=4) == (2, 5)


def test_repeated_timestamps_make_the_first_one_read_unsafe() -> None:
    assert complete_from_ts(7, strictly_increasing=True) == 7
    assert complete_from_ts(7) == 8


def test_a_slide_of_zero_is_refused() -> None:
    with pytest.raises(SpillwayError, match="window slide is 0"):
        time_migration_ts([4], last_window_ts=1, slide=0)

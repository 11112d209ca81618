"""Positions of two checkpoints of a query: which is further, and whether one has got there."""

import pytest

from spillway.handover import Positions, furthest, has_passed

A: Positions = {"ticks": {0: 5, 1: 9}, "news": {0: 1}}
B: Positions = {"ticks": {0: 7, 2: 3}}


def test_the_further_one_counts_in_each_partition() -> None:
    both = {"news": {0: 1}, "ticks": {0: 7, 1: 9, 2: 3}}
    assert furthest(A, B) == furthest(B, A) == both
    assert furthest(both, A) == both  # whoever chooses again chooses the same


@pytest.mark.parametrize(
    ("stands", "passed"),
    [
        (A, True),
        ({**A, "more": {0: 1}}, True),
        ({"ticks": {0: 5, 1: 8}, "news": {0: 1}}, False),
        ({"ticks": {0: 5, 1: 9}}, False),
    ],
)
def test_all_of_it_has_to_be_read(stands: Positions, passed: bool) -> None:
    assert has_passed(stands, A) is passed


def test_a_partition_that_had_nothing_holds_nothing_up() -> None:
    assert has_passed({}, {"ticks": {0: 0}})

"""Each tuple by the share that was in force when it arrived."""

import numpy as np
import pytest

from spillway.gate.arrivals import Arrivals
from spillway.gate.entry import EntryShare
from spillway.ports import ArrivalCurve, Span


def waiting(from_s: float, until_s: float, tuples: int) -> Arrivals:
    curve = ArrivalCurve(positions=np.array([0, tuples]), times_s=np.array([from_s, until_s]))
    return Arrivals.pool([(Span(partition=0, start=0, stop=tuples), curve)])


def changed() -> EntryShare:
    """1 until second 5, then a half, from second 8 on a fifth."""
    entry = EntryShare()
    entry.set(0.5, 5.0)
    entry.set(0.2, 8.0)
    return entry


def test_the_mean_over_what_waits_weighs_every_share_by_its_tuples() -> None:
    expected = (5 * 1.0 + 3 * 0.5 + 2 * 0.2) / 10
    assert changed().of(waiting(0.0, 10.0, 1000)) == pytest.approx(expected)
    assert changed().of(waiting(5.0, 7.0, 10)) == pytest.approx(0.5)
    assert changed().of(waiting(8.0, 9.0, 10)) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("oldest", "expected"), [(500, 1.0), (800, 0.8125), (1000, 0.69), (9999, 0.69)]
)
def test_of_the_oldest_alone(oldest: int, expected: float) -> None:
    assert changed().of(waiting(0.0, 10.0, 1000), oldest) == pytest.approx(expected)


def test_before_anything_was_set_all_is_kept_and_without_tuples_the_share_is_that_of_now() -> None:
    assert EntryShare().now == 1.0
    assert EntryShare().of(waiting(0.0, 10.0, 100)) == 1.0
    assert changed().now == 0.2
    assert changed().of(waiting(0.0, 10.0, 0)) == 0.2
    assert changed().of(waiting(0.0, 10.0, 100), oldest=0) == 0.2


@pytest.mark.parametrize("back_to_s", [6.0, 5.0, 1.0])
def test_a_clock_that_was_set_back_takes_back_what_it_calls_the_future(back_to_s: float) -> None:
    entry = changed()
    entry.set(0.9, back_to_s)
    assert entry.now == 0.9
    before = 0.5 if back_to_s == 6.0 else 1.0
    assert entry.of(waiting(back_to_s - 0.5, back_to_s + 0.5, 100)) == pytest.approx(
        (before + 0.9) / 2
    )
    assert entry.of(waiting(20.0, 30.0, 100)) == pytest.approx(0.9)


def test_what_is_past_is_forgotten_and_what_still_counts_is_not() -> None:
    entry = changed()
    for second in range(9, 200):
        entry.set(0.2 + second / 1000, float(second))
        entry.of(waiting(second - 3.0, second + 1.0, 100))
    assert len(entry._shares) < 10
    expected = sum(0.2 + second / 1000 for second in (196, 197, 198, 199)) / 4
    assert entry.of(waiting(196.0, 200.0, 400)) == pytest.approx(expected)

"""Which target is steered by."""

import pytest

from spillway.gate.room import LONG, Reach, Room
from spillway.model import Target

ASKED = Target(delay_s=2.0)


def test_batches_back_to_back_fill_a_target() -> None:
    room = Room.of(ASKED, turn=1.0)
    assert room.interval_s == pytest.approx(4 / 3)
    assert ASKED.age_share * room.interval_s + room.length_s == pytest.approx(2.0)


def test_a_longer_trigger_leaves_less_for_a_batch() -> None:
    room = Room.of(ASKED, turn=1.0, trigger_s=3.0)
    assert (room.interval_s, room.length_s) == pytest.approx((3.0, 0.5))
    assert Room.of(ASKED, turn=1.0, trigger_s=1.0) == Room.of(ASKED, turn=1.0)


def test_a_target_that_can_hold_is_left_alone() -> None:
    reach = Reach(None)
    assert reach.of(ASKED, 1.0, fixed_s=1.2) is ASKED
    assert reach.why_not == ""


def test_below_the_fixed_price_the_shortest_sensible_delay_is_held_and_said() -> None:
    reach = Reach(None)
    held = reach.of(ASKED, 1.0, fixed_s=1.5)
    assert held.delay_s == pytest.approx(1.5 * LONG * 1.5)
    assert "takes 1.5 s without a tuple, the target allows 1.3 s" in reach.why_not


def test_a_percentile_keeps_its_statistic() -> None:
    held = Reach(None).of(Target(delay_s=1.0, statistic="p99"), 1.0, fixed_s=0.6)
    assert held.statistic == "p99"
    assert held.delay_s == pytest.approx(1.99 * LONG * 0.6)


def test_what_a_trigger_alone_breaks_is_said_with_the_arithmetic() -> None:
    reach = Reach(5.0)
    assert reach.of(ASKED, 1.0, fixed_s=0.2).delay_s == pytest.approx(7.5)
    assert "with a trigger every 5 s tuples wait 2.5 s for the next batch alone" in reach.why_not


def test_a_price_at_the_limit_does_not_move_the_target_to_and_fro() -> None:
    reach = Reach(None)
    reach.of(ASKED, 1.0, fixed_s=1.4)
    assert reach.of(ASKED, 1.0, fixed_s=1.2) is not ASKED
    assert reach.of(ASKED, 1.0, fixed_s=1.0) is ASKED

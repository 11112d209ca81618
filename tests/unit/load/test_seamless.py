"""SEaMLeSS: the sign, the unit and the headroom."""

import pytest

from spillway.load.ctrl import design
from spillway.load.seamless import Seamless


def test_a_longer_queue_admits_less(measure) -> None:  # type: ignore[no-untyped-def]
    def kept(queued_load_s: float) -> float:
        measurement = measure(offered_load=4.0, queued_tuples=1, queued_load_s=queued_load_s)
        fraction: float = Seamless(headroom=1.0).decide(measurement).action.fraction
        return fraction

    assert kept(0.0) > kept(1.0) > kept(2.0) > kept(3.0)


@pytest.mark.parametrize("period_s", [0.5, 1.0, 2.0])
def test_the_admissible_load_is_that_of_a_period(measure, period_s: float) -> None:  # type: ignore[no-untyped-def]
    measurement = measure(period_s=period_s, offered_load=4.0, queued_tuples=1, queued_load_s=1.0)
    fraction = Seamless(headroom=1.0).decide(measurement).action.fraction
    # e = 2 - 1, u = 0.4 s, v = 0.4 + T, of an expected 4 T
    assert fraction == pytest.approx((0.4 + period_s) / (4.0 * period_s))


def test_headroom_moves_only_after_enough_periods_with_shedding(measure) -> None:  # type: ignore[no-untyped-def]
    law = Seamless(headroom=0.8, adjust_periods=30)
    calm = measure(delay_s=4.0, shed_tuples=0)
    shedding = measure(delay_s=4.0, shed_tuples=10)
    for _ in range(100):
        assert law.decide(calm).headroom == 0.8
    for _ in range(29):
        assert law.decide(shedding).headroom == 0.8
    assert law.decide(shedding).headroom == pytest.approx(0.8 * 2.0 / 4.0)


def test_a_new_quota_replaces_the_headroom(measure) -> None:  # type: ignore[no-untyped-def]
    law = Seamless()
    assert law.decide(measure(headroom=0.4)).headroom == 0.4


def test_what_was_learned_is_scaled_by_a_new_quota(measure) -> None:  # type: ignore[no-untyped-def]
    """Thesis eq. 6.1: twice the quota, twice the headroom, whatever had been made of it."""
    law = Seamless(adjust_periods=1)
    told = {"headroom": 0.4, "offered_load": 2.0, "queued_load_s": 0.5, "shed_tuples": 10}
    for _ in range(5):
        learned = law.decide(measure(delay_s=4.0, **told)).headroom
    assert learned is not None
    assert learned < 0.4
    after = law.decide(measure(**{**told, "headroom": 0.8, "shed_tuples": 0})).headroom
    assert after == pytest.approx(2.0 * learned)


def test_under_a_constant_error_it_settles_at_what_its_controller_says(measure) -> None:  # type: ignore[no-untyped-def]
    """The error before counts as much as the one now, with its own sign."""
    law = Seamless(headroom=1.0)
    queue = {"offered_load": 4.0, "queued_tuples": 1, "queued_load_s": 1.0, "period_s": 2.0}
    for _ in range(300):
        fraction = law.decide(measure(**queue)).action.fraction
    # e = 2 s - 1 s
    assert fraction == pytest.approx((design().steady(1.0) + 2.0) / (4.0 * 2.0))

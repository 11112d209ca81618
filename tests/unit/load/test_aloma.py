"""ALoMa: algorithm 1, line by line."""

import math

import pytest

from spillway.load.aloma import Aloma


def feed(law, measure, **fields):  # type: ignore[no-untyped-def]
    return law.decide(measure(queued_tuples=1, queued_load_s=0.1, **fields))


def test_lines_5_and_6_an_overload_that_nobody_feels_raises_the_capacity(measure) -> None:  # type: ignore[no-untyped-def]
    decision = feed(Aloma(headroom=0.8), measure, admitted_load=1.2, offered_load=1.2, delay_s=0.1)
    z = 0.4 / 0.8 * 100  # eq. 5.1
    assert decision.headroom == pytest.approx(0.8 + math.log2(z + 1) / z * 0.4)
    assert decision.action.fraction == 1.0


def test_a_gap_below_one_per_cent_is_closed_at_once(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8)
    assert feed(law, measure, admitted_load=0.807, delay_s=0.1).headroom == pytest.approx(0.807)


def test_lines_7_and_8_what_exceeds_the_capacity_goes(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8)
    decision = feed(law, measure, admitted_load=1.6, offered_load=1.6, delay_s=3.0)
    assert decision.action.fraction == pytest.approx(0.5)
    decision = feed(law, measure, admitted_load=0.96, offered_load=1.6, delay_s=3.1)
    assert decision.action.fraction == pytest.approx(0.4)  # "more": on top of what is shed


def test_lines_10_to_12_too_much_is_shed_when_the_response_time_does_not_rise(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8)
    feed(law, measure, delay_s=0.1)  # the smallest: overload begins at 0.2 s
    feed(law, measure, admitted_load=1.6, offered_load=1.6, delay_s=3.0)
    first = feed(law, measure, admitted_load=0.9, offered_load=1.6, delay_s=1.0)
    second = feed(law, measure, admitted_load=1.0, offered_load=1.6, delay_s=1.0)
    assert first.action.fraction == pytest.approx(0.5 + 0.01)
    assert second.action.fraction == pytest.approx(0.5 + 0.01 + 0.02)  # x = 1 + log2(2)
    assert second.headroom > first.headroom > 0.8
    third = feed(law, measure, admitted_load=1.1, offered_load=1.6, delay_s=1.1)
    assert third.action == second.action  # it rises: waits


def test_lines_16_to_19_late_without_overload_means_less_capacity(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8)
    first = feed(law, measure, admitted_load=0.6, offered_load=0.6, delay_s=3.0)
    assert first.headroom < 0.8
    assert first.action.fraction == pytest.approx(0.99)
    falling = feed(law, measure, admitted_load=0.6, offered_load=0.6, delay_s=2.5)
    assert falling.headroom == first.headroom
    assert falling.action == first.action


def test_line_23_free_capacity_is_given_back(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8)
    feed(law, measure, admitted_load=1.6, offered_load=1.6, delay_s=3.0)
    decision = feed(law, measure, admitted_load=0.64, offered_load=1.6, delay_s=1.0)
    assert decision.action.fraction == pytest.approx(0.6)  # 0.16 of 1.6 less is shed


def test_the_smallest_response_time_is_refreshed(measure) -> None:  # type: ignore[no-untyped-def]
    law = Aloma(headroom=0.8, refresh_periods=4)
    feed(law, measure, delay_s=0.1)
    assert "under" in feed(law, measure, delay_s=0.3).reason
    feed(law, measure, delay_s=0.3)
    assert "normal" in feed(law, measure, delay_s=0.3).reason  # 0.1 has become 0.2


@pytest.mark.parametrize("late", [0.5, 2.0])
def test_the_threshold_follows_what_the_delays_come_to(measure, late: float) -> None:  # type: ignore[no-untyped-def]
    """As long as something is shed; one that is given stays."""
    free, given = Aloma(headroom=0.8), Aloma(headroom=0.8, threshold=0.9)
    for law in (free, given):
        feed(law, measure, admitted_load=1.6, offered_load=1.6, delay_s=3.0)  # sheds from here on
        at_first = _over(law, measure)
        for _ in range(40):
            feed(law, measure, admitted_load=0.8, offered_load=1.6, delay_s=2.0 * late)
        if law is free:
            assert (_over(law, measure) > at_first) is (late < 1.0)
        else:
            assert _over(law, measure) == at_first


def _over(law, measure) -> float:  # type: ignore[no-untyped-def]
    """The smallest delay of a target of 2 s that counts as late."""
    from copy import deepcopy

    delays_s = [0.02 * step for step in range(1, 150)]
    late = (
        d
        for d in delays_s
        if "over"
        in feed(deepcopy(law), measure, admitted_load=0.8, offered_load=1.6, delay_s=d).reason
    )
    return next(late)

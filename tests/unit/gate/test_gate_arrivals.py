import numpy as np
import pytest

from spillway.gate.arrivals import Arrivals
from spillway.gate.staleness import is_stale
from spillway.model import Target
from spillway.ports import ArrivalCurve, Span


def pooled(*curves: tuple[list[int], list[float]]) -> Arrivals:
    return Arrivals.pool(
        [
            (
                Span(partition=p, start=positions[0], stop=positions[-1]),
                ArrivalCurve(positions=np.array(positions), times_s=np.array(times_s)),
            )
            for p, (positions, times_s) in enumerate(curves)
        ]
    )


EVEN = pooled(([0, 100], [10.0, 20.0]))
TWO = pooled(([0, 100], [10.0, 20.0]), ([50, 350], [10.0, 20.0]))
BURST = pooled(([0, 1000, 1100], [10.0, 10.0, 20.0]))


def test_mean_age_of_an_even_stream_is_half_its_span() -> None:
    backlog = EVEN.backlog(20.0, Target(delay_s=2.0))
    assert backlog.mean_age_s == pytest.approx(5.0)
    assert backlog.oldest_age_s == pytest.approx(10.0)


def test_a_percentile_target_reads_the_age_of_that_percentile() -> None:
    backlog = EVEN.backlog(20.0, Target(delay_s=2.0, statistic="p95"))
    assert backlog.statistic_age_s == pytest.approx(9.5)


def test_a_burst_at_one_moment_weighs_with_all_its_tuples() -> None:
    assert BURST.mean_arrival_s() == pytest.approx((1000 * 10 + 100 * 15) / 1100)


def test_a_clock_that_jumps_back_makes_no_age_negative() -> None:
    backlog = EVEN.backlog(0.0, Target(delay_s=2.0))
    assert (backlog.mean_age_s, backlog.oldest_age_s) == (0.0, 0.0)


@pytest.mark.parametrize("count", [0, 1, 7, 200, 399, 400])
def test_the_oldest_are_taken_to_the_tuple_and_at_one_moment(count: int) -> None:
    taken = TWO.oldest(count)
    assert taken[0] + taken[1] - 50 == count
    assert taken[0] == pytest.approx(count / 4, abs=2)


@pytest.mark.parametrize("count", [1, 500, 1000, 1050])
def test_a_burst_is_cut_to_the_tuple(count: int) -> None:
    assert BURST.oldest(count) == {0: count}


def test_the_newest_tuples_have_the_mean_of_their_own_part() -> None:
    assert EVEN.mean_arrival_of_newest_s(20) == pytest.approx(19.0)
    assert EVEN.mean_arrival_of_newest_s(10_000) == pytest.approx(15.0)


def test_a_part_keeps_its_own_ages() -> None:
    part = EVEN.within([Span(partition=0, start=80, stop=100)])
    assert part.tuples == 20
    assert part.mean_arrival_s() == pytest.approx(19.0)


def test_nothing_waiting_has_no_age() -> None:
    assert Arrivals.pool([]).backlog(5.0, Target(delay_s=2.0)).pending_tuples == 0


def test_a_pause_before_the_first_tuple_is_nobodys_age() -> None:
    lone = pooled(([7, 8], [10.0, 70.0])).backlog(70.5, Target(delay_s=2.0))
    assert (lone.mean_age_s, lone.oldest_age_s) == (0.5, 0.5)
    burst = pooled(([7, 8, 107], [10.0, 70.0, 71.0]), ([3, 4, 103], [9.0, 70.0, 71.0]))
    assert burst.backlog(71.0, Target(delay_s=2.0)).oldest_age_s == 1.0
    assert not is_stale(burst, 71.0, Target(delay_s=2.0))
    assert burst.oldest(2) == {0: 8, 1: 4}

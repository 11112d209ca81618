import numpy as np
import pytest

from spillway.gate.arrivals import Arrivals
from spillway.gate.cutting import Terms
from spillway.gate.options import GateOptions
from spillway.gate.pacing import Cut, Pace, cut, freshest
from spillway.gate.staleness import is_stale, newest_within_target
from spillway.model import ADMIT_ALL, BatchRecord, Decision, KeepOfBacklog, Prices, Target
from spillway.ports import ArrivalCurve, Span

WIDE = Pace(kept_tuples=10**9, scanned_tuples=10**9)
TARGET = Target(delay_s=2.0)


def bounded(kept: float, pending: int, pace: Pace, least: float = 0.0) -> Cut:
    return cut(kept, least, pending, pace, "law")


def even(tuples: int, from_s: float, to_s: float) -> Arrivals:
    curve = ArrivalCurve(positions=np.array([0, tuples]), times_s=np.array([from_s, to_s], float))
    return Arrivals.pool([(Span(partition=0, start=0, stop=tuples), curve)])


def test_a_wish_within_bounds_is_granted() -> None:
    given = bounded(250, 1000, WIDE)
    assert (given.reach_tuples, given.skip_tuples, given.fraction) == (1000, 0, 0.25)


def test_the_first_batch_is_small() -> None:
    pace = Pace.at_start(100, None, TARGET)
    given = bounded(10**6, 10**6, pace)
    kept = (given.reach_tuples - given.skip_tuples) * given.fraction
    assert kept == pytest.approx(100)
    assert given.reach_tuples - given.skip_tuples <= pace.scanned_tuples


def test_what_must_be_kept_waits_instead_of_being_shed() -> None:
    given = bounded(10**6, 10**6, Pace.at_start(100, None, TARGET), least=1.0)
    assert (given.reach_tuples, given.skip_tuples, given.fraction) == (100, 0, 1.0)


def test_a_floor_is_kept_of_whatever_is_consumed() -> None:
    given = bounded(0, 10**6, Pace(kept_tuples=1000, scanned_tuples=10**9), least=0.25)
    assert given.fraction == 0.25
    assert given.reach_tuples == 4000


def test_a_floor_forbids_to_skip_unread() -> None:
    given = bounded(0, 10**6, Pace(kept_tuples=10**6, scanned_tuples=5000), least=0.25)
    assert (given.reach_tuples, given.skip_tuples) == (5000, 0)


def took(kept: int, duration_s: float) -> BatchRecord:
    return BatchRecord(kept_tuples=kept, scanned_tuples=kept, duration_s=duration_s, ended_s=0.0)


def test_a_batch_may_grow_until_it_takes_as_long_as_the_target() -> None:
    pace = Pace.at_start(100, None, TARGET).after(took(100, 0.5), TARGET)
    assert pace.kept_tuples == 400
    assert pace.after(took(400, 4.0), TARGET).kept_tuples == 200


def test_a_batch_as_long_as_the_target_may_double_while_more_is_carried_per_second() -> None:
    pace = Pace.at_start(100, None, TARGET).after(took(100, 2.0), TARGET)
    assert pace.kept_tuples == 200
    assert pace.after(took(200, 2.0), TARGET).kept_tuples == 400


def test_long_batches_do_not_allow_longer_ones() -> None:
    """Batches as large as allowed, in which tuples take all of the time."""
    pace, longest_s = Pace.at_start(100, None, TARGET), 0.0
    for _ in range(100):
        pace = pace.after(took(pace.kept_tuples, 1e-3 * pace.kept_tuples), TARGET)
        longest_s = max(longest_s, 1e-3 * pace.kept_tuples)
    assert longest_s < 2.1


@pytest.mark.parametrize("first", [1, 100, 700])
def test_batches_do_not_shrink_where_it_is_no_tuple_that_takes_the_time(first: int) -> None:
    """A machine that others have taken: what arrives meanwhile has to be carried by it."""
    pace = Pace.at_start(10_000, None, TARGET).after(took(first, 0.25), TARGET)
    kept = 750
    for _ in range(60):
        pace = pace.after(took(kept, 3.0), TARGET)
        kept = min(9_000, pace.kept_tuples)
    assert pace.kept_tuples >= 9_000


def test_a_batch_of_the_same_size_that_takes_longer_does_not_make_the_next_smaller() -> None:
    pace = Pace.at_start(100, None, TARGET).after(took(100, 0.25), TARGET)
    assert pace.after(took(100, 3.0), TARGET).kept_tuples >= 200


def test_a_pause_in_a_small_batch_allows_no_long_one() -> None:
    pace = Pace.at_start(100, None, TARGET)
    for kept, took_s in ((100, 0.1), (2000, 2.0), (900, 10.0), (900, 0.9), (2000, 2.0)):
        pace = pace.after(took(kept, took_s), TARGET)
    assert pace.kept_tuples <= 2000


def test_after_a_batch_that_was_replayed_the_next_may_be_twice_as_large() -> None:
    assert Pace.at_start(100, None, TARGET).after(took(300, 0.0), TARGET).kept_tuples == 600


def test_a_small_batch_says_nothing_against_large_ones() -> None:
    pace = Pace.at_start(100, None, TARGET).after(took(100, 0.5), TARGET)
    assert pace.after(took(50, 0.5), TARGET).kept_tuples == 400


def test_a_restart_begins_with_a_part_of_what_the_learned_cost_allows() -> None:
    prices = Prices(fixed_s=0.2, kept_s=1e-5)
    assert Pace.at_start(100, prices, TARGET).kept_tuples in (49_999, 50_000)
    assert Pace.at_start(100, Prices(fixed_s=0.2, kept_s=1.0), TARGET).kept_tuples == 100


def terms(**options: str) -> Terms:
    return Terms(
        options=GateOptions.parse(options),
        target=TARGET,
        prices=None,
        pace=Pace(kept_tuples=100, scanned_tuples=500),
        entry=None,
        adapts=True,
        decides_now=False,
        left_behind=False,
        now_s=10.0,
    )


def test_the_bounds_of_a_gate_are_of_what_waits_there() -> None:
    """Of a join, most may wait at the other gates: their batches have bounds of their own."""
    all_of_it = Decision(action=ADMIT_ALL, reason="law")
    for own, bounded in ((90, False), (110, True)):
        given = terms(joint="q").cut(all_of_it, even(1000, 9.0, 10.0), even(own, 9.0, 10.0))
        assert given.bounded is bounded


def test_of_a_join_nothing_goes_unread() -> None:
    """The other side keeps a share of what is as old: what is skipped here has no match there."""
    few = Decision(action=KeepOfBacklog(tuples=10), reason="law")
    waiting = even(1000, 9.0, 10.0)
    assert terms().cut(few, waiting, waiting).cut.skip_tuples == 500
    given = terms(joint="q").cut(few, waiting, waiting).cut
    assert (given.reach_tuples, given.skip_tuples, given.fraction) == (500, 0, 0.01)


def test_freshest_keeps_as_many_but_only_the_newest() -> None:
    given = freshest(bounded(250, 1000, WIDE))
    assert (given.reach_tuples, given.skip_tuples, given.fraction) == (1000, 750, 1.0)


def test_a_backlog_is_stale_beyond_twice_the_best_batch_length() -> None:
    assert not is_stale(even(100, 7.5, 10.0), 10.0, TARGET)
    assert is_stale(even(100, 7.3, 10.0), 10.0, TARGET)
    assert is_stale(even(100, 7.8, 10.0), 10.0, Target(delay_s=2.0, statistic="p99"))
    assert not is_stale(Arrivals.pool([]), 10.0, TARGET)


@pytest.mark.parametrize("statistic", ["mean", "p95", "p99"])
def test_the_newest_that_meet_the_target_meet_it_just(statistic: str) -> None:
    target = Target(delay_s=2.0, statistic=statistic)  # type: ignore[arg-type]
    prices = Prices(fixed_s=0.3, kept_s=1e-4)
    n = newest_within_target(even(100_000, 0.0, 100.0), 100.0, prices, target)
    share = target.quantile or 0.5
    predicted_s = share * n / 1000.0 + prices.fixed_s + n * prices.kept_s
    assert predicted_s == pytest.approx(2.0, abs=0.01)


def test_a_hopeless_target_keeps_none() -> None:
    assert newest_within_target(even(10, 0, 1), 1, Prices(fixed_s=9, kept_s=1), TARGET) == 0


def test_a_cut_keeps_at_most_a_share_of_all_that_it_consumes() -> None:
    whole = Cut(reach_tuples=1000, skip_tuples=0, fraction=1.0, reason="")
    assert whole.keeping_at_most(0.3).fraction == pytest.approx(0.3)
    newest = Cut(reach_tuples=1000, skip_tuples=600, fraction=1.0, reason="")
    assert newest.keeping_at_most(0.3).fraction == pytest.approx(0.75)
    assert newest.keeping_at_most(0.4) is newest
    unread = Cut(reach_tuples=1000, skip_tuples=1000, fraction=1.0, reason="")
    assert unread.keeping_at_most(0.3) is unread

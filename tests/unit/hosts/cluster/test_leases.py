"""A node never believes in a lease that others call over, whatever freezes in between."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from spillway.hosts.cluster.leases import NodeLease, Sightings

LEASE_S = 10.0


def lease() -> NodeLease:
    names = count(1)
    return NodeLease(LEASE_S, lambda: f"life {next(names)}")


def test_a_lease_runs_from_the_sending_of_a_report_that_is_in_the_log() -> None:
    mine = lease()
    assert not mine.holds(0.0)
    assert not mine.lapsed(0.0)
    mine.reported("life 1", sent_s=1.0, now_s=4.0)
    assert mine.holds(11.0)
    assert not mine.holds(11.1)


def test_a_report_that_is_acknowledged_after_the_lapse_does_not_bring_a_life_back() -> None:
    mine = lease()
    mine.reported("life 1", sent_s=0.0, now_s=0.1)
    mine.reported("life 1", sent_s=9.0, now_s=10.5)
    assert mine.lapsed(10.5)
    mine.begin_anew()
    assert (mine.life.name, mine.life.before) == ("life 2", ("life 1",))
    mine.reported("life 1", sent_s=10.0, now_s=10.6)
    assert not mine.holds(10.6)


def test_a_life_is_over_only_by_a_reading_that_began_after_lease_and_margin() -> None:
    seen = Sightings()
    seen.read("life", position=3, lease_s=LEASE_S, read_s=100.0)
    seen.read("life", position=3, lease_s=LEASE_S, read_s=109.0)  # the same report again
    assert not seen.is_over("life", began_s=110.9)
    assert seen.is_over("life", began_s=111.1)
    seen.read("life", position=4, lease_s=LEASE_S, read_s=111.0)
    assert not seen.is_over("life", began_s=121.9)


def test_of_a_life_that_was_never_read_nothing_is_known() -> None:
    seen = Sightings()
    assert not seen.is_over("life", began_s=1e9)
    seen.assume("life", LEASE_S, read_s=1e9)
    assert not seen.is_over("life", began_s=1e9 + LEASE_S)
    assert seen.is_over("life", began_s=1e9 + 1.2 * LEASE_S)


def test_a_judge_that_was_blind_for_long_starts_to_count_again() -> None:
    seen = Sightings()
    seen.read("life", position=3, lease_s=LEASE_S, read_s=100.0)
    seen.refresh(read_s=500.0)
    assert not seen.is_over("life", began_s=505.0)


steps = st.tuples(
    st.floats(0.0, 12.0),  # the node sleeps or freezes before it sends
    st.floats(0.0, 12.0),  # and between sending and hearing that the report is in the log
    st.floats(0.0, 6.0),  # the judge, before it begins to read,
    st.floats(0.0, 6.0),  # while it reads
)


@given(st.lists(steps, min_size=1, max_size=30), st.integers(-(10**6), 10**6))
def test_no_life_holds_its_lease_when_a_judge_calls_it_over(
    history: list[tuple[float, float, float, float]], apart_s: int
) -> None:
    """The judge's clock is set differently. A report is in the log at any time between the sending
    and the hearing; here at the hearing, the latest."""
    mine, judge = lease(), Sightings()
    logged: list[tuple[float, str]] = []  # when it was in the log, whose it was
    now_s = judged_s = 0.0
    over: dict[str, float] = {}
    for sleeps_s, takes_s, waits_s, reads_s in history:
        sent_s = now_s + sleeps_s
        if mine.lapsed(sent_s):
            mine.begin_anew()
        life, now_s = mine.life.name, sent_s + takes_s
        logged.append((now_s, life))
        mine.reported(life, sent_s, now_s)
        began_s = max(judged_s, now_s - 5.0) + waits_s
        judged_s = began_s + reads_s
        for position, (at_s, name) in enumerate(logged):
            if at_s <= began_s:
                judge.read(name, position, LEASE_S, judged_s + apart_s)
        for _, name in logged:
            if judge.is_over(name, began_s + apart_s):
                over.setdefault(name, began_s)
        if mine.life.name in over:
            assert not mine.holds(over[mine.life.name])

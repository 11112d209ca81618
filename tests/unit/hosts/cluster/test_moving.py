"""A move while the query runs: what the record says next, whatever dies in between."""

from dataclasses import replace
from typing import Any

import pytest

from spillway.flow.flow import Flow
from spillway.hosts.cluster.assigning import Standing, following
from spillway.hosts.cluster.handovers import Handovers, resting
from spillway.hosts.cluster.messages import Assignment, NodeReport, Reached, Successor, run_name

SQL = "SELECT count(*) AS n FROM readings GROUP BY window(event_time, '2 seconds')"
KAFKA = {"type": "kafka", "brokers": "b:1", "topic": "t"}
BODY = {"sql": SQL, "sink": KAFKA}
FLOW = Flow.model_validate(
    {
        "streams": {"readings": {"source": "synthetic", "event_time": "event_time"}},
        "classes": {"default": {"delay": "1s"}},
        "queries": {"counts": BODY},
    }
)
ORIGIN = Assignment(
    query=BODY, state="runs", node="a", life="a1", epoch=4, to="b", reason="moved by a user"
)


def report(life: str, **changes: object) -> NodeReport:
    given = {"lease_s": 10.0, "state": "running", "applied": 0, "running": {}}
    return NodeReport(life=life, **{**given, **changes})  # type: ignore[arg-type]


def standing(over: tuple[str, ...] = (), **reports: NodeReport) -> Standing:
    known = {"a": report("a1"), "b": report("b1"), "c": report("c1")} | reports
    return Standing(reports=known, over=frozenset(over))


def to_c(name: str, given: Assignment) -> str:
    return "c"


def step(
    given: Assignment, now: Standing, now_s: float = 0.0, within_s: float = 60.0
) -> Assignment:
    handovers = Handovers(FLOW, within_s)
    given = handovers.begin("counts", given, now, to_c)
    new = following("counts", given, 0, now, to_c)
    if new is None and given.next is not None:
        new = handovers.go_on("counts", given, now, to_c, now_s)
    return new or given


def reaches(**reached: Any) -> dict[str, Reached]:
    return {"counts": Reached(**reached), "counts@2": Reached(**reached)}


def begun() -> Assignment:
    return step(ORIGIN, standing())


def test_a_query_over_windows_gets_a_successor_that_follows_it() -> None:
    given = begun()
    assert given.state == "runs"
    assert given.next == Successor(query=BODY, generation=2, node="b", life="b1")
    assert step(given, standing()) == given


def test_first_the_successor_catches_up_then_the_origin_cuts_then_it_is_told() -> None:
    cuts = step(begun(), standing(b=report("b1", reached=reaches(read_us=7))))
    assert cuts.next is not None
    assert (cuts.next.state, cuts.next.read_us) == ("cuts", 7)
    assert step(cuts, standing(b=report("b1", reached=reaches(until_us=9)))) == cuts  # not its word
    takes = step(cuts, standing(a=report("a1", reached=reaches(until_us=9))))
    assert takes.next is not None
    assert (takes.next.state, takes.next.from_us) == ("takes", 9)
    now = standing(a=report("a1", reached=reaches(until_us=9, finished=True)))
    moved = step(takes, now)
    assert (moved.node, moved.life, moved.generation, moved.epoch) == ("b", "b1", 2, 1)
    assert (moved.next, moved.to, moved.moved_from) == (None, None, "a")


def test_a_query_that_cannot_be_cut_stops_first_and_the_reason_is_said() -> None:
    rows = {"sql": "SELECT count(*) AS n FROM readings", "sink": KAFKA}
    given = step(replace(ORIGIN, query=rows), standing())
    assert given.state == "leaves"
    assert "no GROUP BY window" in given.reason


def test_rows_are_the_successors_once_the_origin_has_read_up_to_the_cut() -> None:
    rows = {"sql": "SELECT * FROM readings", "sink": KAFKA}
    follows = step(replace(ORIGIN, query=rows), standing())
    at, further = {"readings": {0: 7}}, {"readings": {0: 9}}
    cuts = step(follows, standing(b=report("b1", reached=reaches(read_at=at))))
    assert cuts.next is not None
    assert (cuts.next.state, cuts.next.read_at) == ("cuts", at)
    assert step(cuts, standing(a=report("a1", reached=reaches(until_at=further)))) == cuts
    done = reaches(until_at=further, finished=True)
    moved = step(cuts, standing(a=report("a1", reached=done)))
    assert (moved.node, moved.generation, moved.from_at) == ("b", 2, further)
    assert (moved.next, moved.came_by) == (None, "moved while it ran")


def test_a_user_may_want_it_stopped_first() -> None:
    assert step(replace(ORIGIN, stops_first=True), standing()).state == "leaves"


def test_a_successor_that_fails_or_never_catches_up_is_given_up() -> None:
    failed = step(begun(), standing(b=report("b1", failed={"counts@2": "no such column"})))
    assert failed.next is None
    assert failed.stops_first
    assert "no such column" in failed.reason
    handovers = Handovers(FLOW, 60.0)
    given = begun()
    assert handovers.go_on("counts", given, standing(), to_c, 0.0) is None
    assert handovers.go_on("counts", given, standing(), to_c, 59.0) is None
    late = handovers.go_on("counts", given, standing(), to_c, 61.0)
    assert late is not None
    assert "60 s" in late.reason
    assert step(late, standing()).state == "leaves"


def test_an_origin_that_does_not_finish_keeps_its_part_and_it_is_said_once() -> None:
    given = begun()
    assert given.next is not None
    takes = replace(given, next=replace(given.next, state="takes", from_us=9))
    handovers = Handovers(FLOW, 60.0)
    assert handovers.go_on("counts", takes, standing(), to_c, 0.0) is None
    late = handovers.go_on("counts", takes, standing(), to_c, 61.0)
    assert late is not None
    assert late.next == takes.next
    assert "a has not finished its part within 60 s: its watermark" in late.reason
    assert handovers.go_on("counts", late, standing(), to_c, 99.0) is None
    done = standing(a=report("a1", reached=reaches(finished=True)))
    moved = handovers.go_on("counts", late, done, to_c, 100.0)
    assert moved is not None
    assert moved.generation == 2


def test_the_next_attempt_has_a_checkpoint_of_its_own() -> None:
    failed = step(begun(), standing(b=report("b1", failed={"counts@2": "no"})))
    again = step(replace(failed, stops_first=False), standing())
    assert again.next is not None
    assert again.next.generation == 3


def test_a_change_that_fails_leaves_the_query_as_it_is() -> None:
    other = {**BODY, "sql": SQL.replace("count(*)", "sum(id)")}
    given = step(replace(ORIGIN, to=None, changes_to=other), standing())
    assert given.next is not None
    assert (given.next.query, given.next.node) == (other, "c")
    failed = step(given, standing(c=report("c1", failed={"counts@2": "no column id"})))
    assert (failed.next, failed.changes_to, failed.state) == (None, None, "runs")
    assert failed.query == BODY
    assert failed.reason == "not changed: no column id"
    assert step(failed, standing()) == failed


def test_a_change_remembers_the_version_before() -> None:
    other = {**BODY, "sql": SQL.replace("count(*)", "sum(id)")}
    given = step(replace(ORIGIN, to=None, changes_to=other), standing())
    assert given.next is not None
    takes = replace(given, next=replace(given.next, state="takes", from_us=9))
    changed = step(takes, standing(a=report("a1", reached=reaches(finished=True))))
    assert (changed.query, changed.before, changed.changes_to) == (other, BODY, None)


@pytest.mark.parametrize("state", ["follows", "cuts", "takes"])
def test_a_dead_successor_goes_on_elsewhere_on_its_checkpoint(state: str) -> None:
    given = begun()
    assert given.next is not None
    given = replace(given, next=replace(given.next, state=state, from_us=9))  # type: ignore[arg-type]
    after = step(given, standing(over=("b1",)))
    assert after.next is not None
    assert (after.next.node, after.next.generation, after.next.epoch) == ("c", 2, 2)
    assert (after.next.state, after.next.from_us) == (state, 9)


@pytest.mark.parametrize("state", ["follows", "cuts", "takes"])
def test_a_dead_origin_goes_on_elsewhere_and_keeps_its_successor(state: str) -> None:
    given = begun()
    assert given.next is not None
    given = replace(given, to=None, next=replace(given.next, state=state))  # type: ignore[arg-type]
    after = step(given, standing(over=("a1",)))
    assert (after.node, after.generation, after.epoch) == ("c", 1, 5)
    assert after.next == given.next


def test_a_query_that_is_stopped_takes_its_successor_along() -> None:
    given = step(replace(begun(), ends=True), standing())
    assert (given.state, given.next) == ("leaves", None)


def test_a_cluster_that_ends_keeps_what_has_been_promised_and_nothing_else() -> None:
    given = begun()
    assert given.next is not None
    assert resting(given).next is None
    takes = replace(given.next, state="takes", from_us=9)
    kept = resting(replace(given, next=takes)).next
    assert kept == replace(takes, node=None, life=None)


def test_both_sides_of_a_move_have_names_of_their_own() -> None:
    assert [run_name("counts", number) for number in (1, 2)] == ["counts", "counts@2"]

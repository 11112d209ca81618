"""Curves of a class with several queries, of which one is always behind the others."""

from typing import Any

from spillway.journal.entries import Event
from spillway.model import Backlog, Decided, Decision, KeepFraction, Measurement, Target
from spillway.watch.history import Asked, history_of
from spillway.watch.story import Story


def decided(query: str, time_s: float, period_s: float, offered: int, waiting: int = 0) -> Decided:
    measurement = Measurement(
        time_s=time_s,
        period_s=period_s,
        target=Target(delay_s=2.0),
        offered_tuples=offered,
        admitted_tuples=offered,
        shed_tuples=0,
        completed_tuples=offered,
        queued_tuples=0,
        queued_load_s=0.0,
        offered_load=0.0,
        admitted_load=0.0,
        cost_s=0.0,
        delay_s=1.0 if query == "quick" else 3.0,
        busy_s=0.0,
        backlog=Backlog(pending_tuples=waiting, oldest_age_s=1.0),
        class_name="gold",
        query=query,
    )
    return Decided(
        measurement=measurement,
        decision=Decision(action=KeepFraction(fraction=1.0), reason="all"),
    )


def told() -> dict[str, Any]:
    """One decides every second, the other every eight; each is offered 100 tuples a second."""
    story = Story()
    story.tell([decided("quick", 1000.0 + s, 1.0, 100, waiting=5) for s in range(1, 21)])
    story.tell([decided("slow", 1008.0, 8.0, 800, waiting=70)])
    story.tell([decided("slow", 1016.0, 8.0, 800, waiting=80)])
    asked = Asked(seconds=20.0, points=30)  # one a second
    return dict(history_of(story, 1020.0, asked)["classes"]["gold"])


def test_what_one_query_does_not_know_yet_is_not_drawn_as_nothing() -> None:
    rates = told()["offered_per_s"]
    assert {rate for rate in rates if rate is not None} == {200.0}
    assert rates[-5:] == [None] * 5  # the slow one has said nothing since second 16
    assert rates[-6] == 200.0


def test_what_waits_is_what_waits_at_all_of_its_queries() -> None:
    columns = told()
    waiting = dict(zip(columns["times_s"], columns["waiting"], strict=True))
    assert (waiting[1010.0], waiting[1020.0]) == (75.0, 85.0)


def test_a_delay_is_that_of_all_tuples_and_the_worst_that_of_any_batch() -> None:
    columns = told()
    at = columns["times_s"].index(1017.0)
    assert columns["worst_s"][at] == 3.0
    assert columns["delay_s"][at] == 2.778  # (100 x 1 s + 800 x 3 s) / 900


def test_shares_are_there_before_the_first_tuple() -> None:
    story = Story()
    story.tell([Event(time_s=1.0, kind="started", fields={"classes": {"gold": {"priority": 3}}})])
    quota = {"class_name": "gold", "quota": 0.25, "reason": "lends"}
    story.tell([Event(time_s=10.0, kind="quota", fields=quota)])
    columns = history_of(story, 12.0, Asked(seconds=10.0, points=10))["classes"]["gold"]
    assert [v for v in columns["quota"] if v is not None] == [0.25]
    assert [v for v in columns["original"] if v is not None] == [1.0]

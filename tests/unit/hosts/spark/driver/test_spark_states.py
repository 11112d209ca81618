"""What is said of a query while it starts, and queries that start one after another."""

import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.hosts.spark.driver import queries as module
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.hosts.spark.driver.queries import Queries
from spillway.hosts.spark.driver.states import States
from spillway.hosts.spark.driver.supervision import WAITS_S, Restarts, cause_of
from spillway.model import Backlog, Report

SLOW = (
    "org.apache.spark.SparkException: Python worker failed to connect back.\n"
    "\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker\n"
    "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker"
)


def report(time_s: float, pending: int) -> Report:
    return Report(
        query="q",
        class_name="gold",
        time_s=time_s,
        offered_tuples=pending,
        admitted_tuples=0,
        shed_tuples=0,
        completed_tuples=0,
        backlog=Backlog(pending_tuples=pending),
    )


class Heard:
    """What the driver has heard of query q."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.progress: dict[str, BatchProgress] = {}
        self.counted_s: float | None = None
        self.states = States(lambda name: self.report, self.progress, lambda name: self.counted_s)


def first_trigger(started_s: float) -> BatchProgress:
    """Of the empty batch that says where the stream starts."""
    return BatchProgress(
        query="q",
        run_id="r",
        batch_id=0,
        started_s=started_s,
        duration_s=0.1,
        input_rows=0,
        phases_s={},
        sources=(),
    )


def test_a_query_starts_warms_up_runs_catches_up_and_restarts() -> None:
    heard = Heard()
    states = heard.states
    assert states.of("q") == "starting"
    states.phases["q"] = "warming up"
    assert states.of("q") == "warming up"
    states.phases["q"] = "starting"
    states.begun_s["q"] = 100.0
    assert states.of("q") == "starting"
    heard.report = report(101.0, pending=7)
    assert states.of("q") == "warming up"  # no batch has counted yet
    heard.counted_s = 103.0
    assert states.of("q") == "running"
    states.reasons["q"] = "catching up: 40 s behind, done in about 25 s"
    assert states.of("q") == "catching up"
    assert states.catching_up() == {"q": "catching up: 40 s behind, done in about 25 s"}
    states.phases["q"] = "restarting"
    del states.begun_s["q"]
    assert states.of("q") == "restarting"
    states.begun_s["q"] = 110.0
    assert states.of("q") == "restarting"  # what was heard is of the run before
    assert states.waiting("q") is None


def test_a_query_without_tuples_is_not_said_to_warm_up() -> None:
    heard = Heard()
    heard.states.begun_s["q"] = 100.0
    heard.progress["q"] = first_trigger(100.5)
    assert heard.states.of("q") == "no tuples yet"
    assert heard.states.waiting("q") == 0


class Toys:
    """Queries that come when they are let, and what was started so far."""

    def __init__(self) -> None:
        self.clock = ManualClock(100.0)
        self.heard: dict[str, Report] = {}
        self.started: list[str] = []
        self.active: dict[str, bool] = {}
        self.error: str | None = None
        self.on_start: Callable[[str], None] = self.come
        states = States(self.heard.get, {}, lambda name: None)
        self.states = states
        self.notes: list[dict[str, Any]] = []
        self.queries = Queries("abc", self.start, states, self.note, self.clock)

    def note(self, event: str, **values: object) -> None:
        self.notes.append({"event": event, **values})

    def come(self, name: str) -> None:
        self.heard[name] = report(self.clock.now_s(), pending=0)

    def start(self, name: str) -> Any:
        self.started.append(name)
        self.active[name] = True
        self.on_start(name)
        return cast(Any, Toy(self, name))


class Toy:
    lastProgress = None  # noqa: N815

    def __init__(self, toys: Toys, name: str) -> None:
        self._toys, self._name = toys, name

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._toys.active[self._name]

    def exception(self) -> str | None:
        return self._toys.error


def test_queries_start_in_order_each_after_the_one_before_it_has_come() -> None:
    toys = Toys()
    seen: list[bool] = []

    def start(name: str) -> None:
        seen.append(all(toys.states.arrived(before) for before in toys.started[:-1]))
        toys.come(name)

    toys.on_start = start
    toys.queries.start()
    assert toys.started == ["a", "b", "c"]
    assert seen == [True, True, True]


def test_a_query_that_does_not_come_holds_the_others_back_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_LOOK_S", 0.2)
    toys = Toys()
    toys.on_start = lambda name: None
    begun_s = time.monotonic()
    toys.queries.start()
    assert toys.started == ["a", "b", "c"]
    assert 0.5 < time.monotonic() - begun_s < 60.0


def test_queries_that_end_together_are_restarted_one_after_another() -> None:
    toys = Toys()
    toys.queries.start()
    toys.active = dict.fromkeys("abc", False)
    toys.error, toys.on_start = "java.io.IOException: gone", lambda name: None
    toys.clock.set(200.0)
    toys.queries.supervise()
    assert toys.started[3:] == ["a"]
    assert {name: toys.states.of(name) for name in "abc"} == dict.fromkeys("abc", "restarting")
    toys.queries.supervise()
    assert toys.started[3:] == ["a"]
    toys.come("a")
    toys.queries.supervise()
    assert toys.started[3:] == ["a", "b"]


def test_a_planner_that_did_not_connect_in_time_is_started_again_for_ever() -> None:
    assert "did not connect within Spark's 10 s" in cause_of(SLOW)
    restarts, now_s = Restarts(), 100.0
    for _ in range(3 * len(WAITS_S)):
        while not restarts.due("q", now_s, "slow", for_ever=True):
            now_s += 1.0
    assert restarts.counts["q"] == 3 * len(WAITS_S)
    with pytest.raises(SpillwayError, match="is not restarted again"):
        restarts.due("q", now_s, "broken")


def test_a_stopped_flow_starts_nothing_more() -> None:
    toys = Toys()
    toys.on_start = lambda name: toys.queries.stopping.set()
    toys.queries.start()
    assert toys.started == ["a"]

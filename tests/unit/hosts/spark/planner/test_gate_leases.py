"""A node whose queries others may take over plans within its lease, and not a moment longer."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.offsets import decode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.model import Order, Report
from spillway.testing import ToyLog, ToySpark


@dataclass
class Driver:
    """Renews the lease with every answer, for as long as it answers."""

    clock: ManualClock
    lease_s: float = 10.0
    answers: bool = True
    says_nothing: bool = False

    def ask(self, report: Report) -> Order | None:
        if not self.answers:
            return None
        until_s = None if self.says_nothing else self.clock.now_s() + self.lease_s
        target = GateOptions.parse({"delay": "2s"}).target
        return Order(target=target, plan_until_s=until_s)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> ToyLog:
    found = ToyLog()
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: found)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return found


def planner(clock: ManualClock, ask: Callable[[Report], Order | None], **options: str) -> Planner:
    given = {"source": "toy", "delay": "2s", "channel": "none", **options}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask)
    return Planner(given, GateOptions.parse(given), around=around)


def batches(spark: ToySpark, clock: ManualClock, seconds: float) -> int:
    """With tuples in them, in this time."""
    ends_s, found = clock.now_s() + seconds, 0
    while clock.now_s() < ends_s:
        batch = spark.batch()
        found += batch is not None and batch.offered_tuples > 0
        clock.advance(0.01)
    return found


def test_it_goes_on_alone_until_the_lease_ends_and_then_stands_still(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = ToySpark(planner(clock, driver.ask, leased="true"), clock)
    assert batches(spark, clock, 5.0) > 3
    driver.answers = False
    assert batches(spark, clock, 9.0) > 3
    clock.advance(2.0)
    assert batches(spark, clock, 60.0) == 0
    driver.answers = True
    assert batches(spark, clock, 5.0) > 3


def test_without_a_lease_it_goes_on_alone_for_ever(log: ToyLog, clock: ManualClock) -> None:
    driver = Driver(clock)
    spark = ToySpark(planner(clock, driver.ask), clock)
    assert batches(spark, clock, 5.0) > 3
    driver.answers = False
    assert batches(spark, clock, 60.0) > 20


def test_it_plans_nothing_before_a_first_lease(log: ToyLog, clock: ManualClock) -> None:
    for driver in (Driver(clock, answers=False), Driver(clock, says_nothing=True)):
        spark = ToySpark(planner(clock, driver.ask, leased="true"), clock)
        assert batches(spark, clock, 10.0) == 0


def test_a_plan_that_froze_before_spark_logged_it_is_not_run(
    log: ToyLog, clock: ManualClock
) -> None:
    leased = planner(clock, Driver(clock).ask, leased="true")
    spark = ToySpark(leased, clock)
    spark.batches(3)
    clock.advance(1.0)
    start = spark.logged[-1]
    end = leased.latest(start)
    assert end != start
    leased.completed(start)
    clock.advance(11.0)
    with pytest.raises(SpillwayError, match="lease ran out while a batch was planned"):
        leased.shown(start, end)


def test_heartbeats_need_a_lease_too(log: ToyLog, clock: ManualClock) -> None:
    driver = Driver(clock)
    spark = ToySpark(planner(clock, driver.ask, leased="true", heartbeat="t", quiet="2s"), clock)
    batches(spark, clock, 5.0)
    log.limit = decode(spark.logged[-1]).stretches[0].stop
    known = len(spark.logged)
    driver.answers = False
    clock.advance(11.0)
    for _ in range(200):
        spark.batch()
        clock.advance(0.05)
    assert len(spark.logged) == known
    driver.answers = True
    clock.advance(20.0)
    spark.batches(5)
    assert len(spark.logged) > known

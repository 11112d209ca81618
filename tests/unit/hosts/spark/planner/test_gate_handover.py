"""What a gate writes into its offsets while its query moves to another checkpoint."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from spillway.clock import ManualClock
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.handover import ALL, FOREVER, NOTHING_YET, Owned
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.model import Order, Report
from spillway.testing import ToyLog, ToySpark

TARGET = GateOptions.parse({"delay": "2s"}).target


@dataclass
class Driver:
    clock: ManualClock
    answers: bool = True
    order: Order = field(default_factory=lambda: Order(target=TARGET))

    def ask(self, report: Report) -> Order | None:
        if not self.answers:
            return None
        return replace(self.order, plan_until_s=self.clock.now_s() + 30.0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> ToyLog:
    found = ToyLog()
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: found)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return found


def spark_of(clock: ManualClock, ask: Callable[[Report], Order | None], **options: str) -> ToySpark:
    given = {"source": "toy", "delay": "2s", "channel": "none", "leased": "true", **options}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask)
    return ToySpark(Planner(given, GateOptions.parse(given), around=around), clock)


def next_batch(spark: ToySpark, clock: ManualClock) -> Offset:
    for _ in range(1000):
        clock.advance(0.05)
        if (batch := spark.batch()) is not None and batch.offered_tuples > 0:
            return batch
    raise AssertionError("no batch came")


def test_a_gate_that_is_told_nothing_owns_all_windows(log: ToyLog, clock: ManualClock) -> None:
    batch = next_batch(spark_of(clock, Driver(clock).ask), clock)
    assert batch.owned is None
    assert "owned" not in encode(batch)


def test_what_is_its_own_stands_in_every_offset_from_then_on(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask)
    next_batch(spark, clock)
    driver.order = Order(target=TARGET, owned=Owned(until_us=77))
    batch = next_batch(spark, clock)
    assert batch.owned == Owned(from_us=0, until_us=77)
    assert decode(encode(batch)) == batch
    driver.order = Order(target=TARGET)
    assert next_batch(spark, clock).owned == Owned(until_us=77)


def test_a_successor_begins_where_the_origin_stands_and_owns_nothing_yet(
    log: ToyLog, clock: ManualClock
) -> None:
    origin = next_batch(spark_of(clock, Driver(clock).ask), clock)
    driver = Driver(clock)
    follows = json.dumps(encode(origin))
    spark = spark_of(clock, driver.ask, follows=follows)
    batch = next_batch(spark, clock)
    assert [s.start for s in batch.stretches] == [s.stop for s in origin.stretches]
    assert batch.owned == NOTHING_YET
    assert batch.totals.admitted == batch.kept_tuples()
    driver.order = Order(target=TARGET, owned=Owned(from_us=77))
    assert next_batch(spark, clock).owned == Owned(from_us=77, until_us=FOREVER)


def test_a_gate_that_is_held_stands_still_also_when_the_driver_is_gone(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask)
    next_batch(spark, clock)
    driver.order = Order(target=TARGET, may_start=False, held=True)
    clock.advance(1.0)
    assert spark.batch() is None
    driver.answers = False
    clock.advance(10.0)
    assert spark.batch() is None
    driver.answers, driver.order = True, Order(target=TARGET)
    assert next_batch(spark, clock).offered_tuples > 0


def all_up_to(stop: int) -> Order:
    return Order(target=TARGET, until={"readings": {0: stop}})


def test_no_batch_goes_beyond_the_bound_and_the_last_one_ends_there_to_the_tuple(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask, gate="rows/readings")
    first = next_batch(spark, clock).stretches[0]
    stop = first.stop + 777
    driver.order = all_up_to(stop)
    reached = 0
    for _ in range(40):
        clock.advance(0.5)
        if (batch := spark.batch()) is not None:
            reached = batch.stretches[0].stop
    assert reached == stop
    driver.order = Order(target=TARGET, owned=ALL)
    batch = next_batch(spark, clock)
    assert (batch.stretches[0].start, batch.owned) == (stop, ALL)
    assert first.start + batch.totals.admitted + batch.totals.shed == batch.stretches[0].stop


def test_a_bound_holds_for_the_very_batch_whose_leave_it_came_with(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask, gate="rows/readings")
    stop = next_batch(spark, clock).stretches[0].stop
    driver.order = all_up_to(stop + 1)
    assert next_batch(spark, clock).stretches[0].stop == stop + 1


def test_a_partition_without_a_bound_is_not_read_where_others_have_one(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask, gate="rows/readings")
    next_batch(spark, clock)
    log.partitions = 2
    driver.order = all_up_to(10**9)
    batch = next_batch(spark, clock)
    assert [s.partition for s in batch.stretches] == [0]
    driver.order = Order(target=TARGET)
    next_batch(spark, clock)  # may have been looked at before
    partitions = {s.partition: s for s in next_batch(spark, clock).stretches}
    assert partitions[1].start == 0


def test_a_gate_without_tuples_hears_of_it_and_says_that_it_stands_still(
    log: ToyLog, clock: ManualClock
) -> None:
    driver, said = Driver(clock), list[bool]()

    def ask(report: Report) -> Order | None:
        said.append(report.held)
        return driver.ask(report)

    spark = spark_of(clock, ask)
    next_batch(spark, clock)
    log.limit = 0
    for _ in range(4):
        clock.advance(1.0)
        spark.batch()
    driver.order = Order(target=TARGET, may_start=False, held=True)
    said.clear()
    for _ in range(4):
        clock.advance(1.0)
        assert spark.batch() is None
    assert said[0] is False
    assert said[-1] is True

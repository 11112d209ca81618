"""What a gate writes into its offsets while its query moves to another checkpoint."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from spillway.clock import ManualClock
from spillway.gate.offsets import Offset, decode, encode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.logs import catalog
from spillway.model import FOREVER, NOTHING_YET, Order, Owned, Report
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


def test_a_cut_is_made_behind_the_batch_that_it_was_chosen_after_and_nowhere_else(
    log: ToyLog, clock: ManualClock
) -> None:
    driver = Driver(clock)
    spark = spark_of(clock, driver.ask)
    seq = next_batch(spark, clock).seq
    driver.order = Order(target=TARGET, owned=Owned(until_us=77), owned_after=seq + 1)
    assert next_batch(spark, clock).owned is None
    assert next_batch(spark, clock).owned == Owned(until_us=77)
    driver.order = Order(target=TARGET, owned=Owned(until_us=88), owned_after=seq)
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

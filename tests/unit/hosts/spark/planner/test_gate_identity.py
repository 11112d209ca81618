"""A name may come to mean another log: its identity is in the offset, and is compared."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.ledger import audit
from spillway.gate.offsets import decode
from spillway.logs import catalog
from spillway.ports import Span
from spillway.testing import ToyLog, ToySpark, toy_planner, toy_source


@dataclass
class Topics(ToyLog):
    """`now` is the topic that the name means; None: nobody tells."""

    now: str | None = "first"
    opened_for: list[str | None] = field(default_factory=list)

    def identity(self) -> Mapping[str, str]:
        self.require_the_same()
        return {} if self.now is None else {"topic_id": self.now}

    def extent(self, now_s: float) -> tuple[Span, ...]:
        self.require_the_same()
        return super().extent(now_s)

    def require_the_same(self) -> None:
        meant = self.opened_for[-1]
        if meant is not None and self.now not in (None, meant):
            raise SpillwayError("the topic was made anew")


@pytest.fixture
def topics() -> Iterator[Topics]:
    log = Topics()

    def opened(options: Mapping[str, str], schema: object = None) -> Topics:
        log.opened_for.append(options.get("topic_id"))
        return log

    with (
        patch.object(catalog, "open_log", opened),
        patch.object(catalog, "pinned", lambda options, now_s: dict(options)),
    ):
        yield log


def ids(spark: ToySpark) -> list[str | None]:
    return [decode(offset).pinned.get("topic_id") for offset in spark.logged]


def test_the_first_start_pins_which_log_it_is(topics: Topics, clock: ManualClock) -> None:
    spark = ToySpark(toy_planner(clock), clock)
    spark.batches(5)
    assert set(ids(spark)) == {"first"}
    assert topics.opened_for == [None, "first"]


def test_a_restart_on_a_log_that_was_made_anew_ends_before_it_reads(
    topics: Topics, clock: ManualClock
) -> None:
    spark = ToySpark(toy_planner(clock), clock)
    spark.batches(5)
    topics.now = "second"
    spark.planner = toy_planner(clock)
    with pytest.raises(SpillwayError, match="made anew"):
        spark.batch()


def test_a_batch_that_is_run_again_never_reads_another_log(
    topics: Topics, clock: ManualClock
) -> None:
    """After a crash Spark shows the logged batch first, and asks for no offset before."""
    spark = ToySpark(toy_planner(clock), clock)
    spark.batches(5)
    topics.now = "second"
    with pytest.raises(SpillwayError, match="made anew"):
        toy_planner(clock).shown(spark.logged[-2], spark.logged[-1])


def test_offsets_without_an_identity_go_on_and_get_one(topics: Topics, clock: ManualClock) -> None:
    """Those of earlier releases, and those of a start at which nobody told it."""
    topics.now = None
    spark = ToySpark(toy_planner(clock), clock)
    spark.batches(5)
    assert set(ids(spark)) == {None}
    topics.now = "first"
    spark.planner = toy_planner(clock)
    spark.planner.shown(spark.logged[-2], spark.logged[-1])
    spark.batches(5)
    assert ids(spark)[5:] == ["first"] * (len(spark.logged) - 5)
    assert audit([decode(offset) for offset in spark.logged]).exact
    topics.now = "second"
    spark.planner = toy_planner(clock)
    with pytest.raises(SpillwayError, match="made anew"):
        spark.batch()


@dataclass
class Pattern(ToyLog):
    """Topics that come while it is read; each is a partition."""

    there: int = 1
    met: int = 0

    def identity(self) -> Mapping[str, str]:
        self.met = self.there
        return {"topics": json.dumps({f"topic {n}": "" for n in range(self.met)})}

    def grown(self) -> Mapping[str, str]:
        return self.identity() if self.met < self.there else {}

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return super().extent(now_s)[: self.met]


def test_what_comes_to_a_log_is_pinned_with_the_first_batch_that_reads_it(
    clock: ManualClock,
) -> None:
    log = Pattern(partitions=2)
    with toy_source(log):
        spark = ToySpark(toy_planner(clock), clock)
        spark.batches(4)
        log.there = 2
        spark.batches(4)
    offsets = [decode(offset) for offset in spark.logged]
    read = [{s.partition for s in offset.stretches} for offset in offsets]
    assert (read[0], read[-1]) == ({0}, {0, 1})
    told = [offset.pinned["topics"] for offset in offsets]
    assert [len(json.loads(topics)) for topics in told] == [len(parts) for parts in read]
    assert audit(offsets).exact

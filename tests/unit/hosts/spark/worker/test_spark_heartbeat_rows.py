"""The row of a heartbeat: its event time follows the last tuple that can be read."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from spillway.errors import SpillwayError
from spillway.gate.rules import Rule, Stretch
from spillway.hosts.spark.worker.rows import Rows
from spillway.hosts.spark.worker.slices import Slice

SCHEMA = StructType(
    [
        StructField("at", TimestampType()),
        StructField("_arrival", TimestampType()),
        StructField("_heartbeat", BooleanType()),
    ]
)
SECOND_US = 1_000_000
UTC = pa.timestamp("us", tz="UTC")


class HoleyLog:
    """Position p arrived at second p with event time p - 5; some positions hold no row or time."""

    def __init__(self, *, empty: tuple[int, ...] = (), untimed: tuple[int, ...] = ()) -> None:
        self._empty, self._untimed = empty, untimed

    def read(self, span: Any, wanted: Any) -> Iterator[pa.RecordBatch]:
        for p in range(span.start, span.stop):
            if p in self._empty:
                continue
            event_us = None if p in self._untimed else (p - 5) * SECOND_US
            yield pa.record_batch(
                {"at": pa.array([event_us], UTC), "_arrival": pa.array([p * SECOND_US], UTC)}
            )


class LostLog:
    def read(self, span: Any, wanted: Any) -> Iterator[pa.RecordBatch]:
        raise SpillwayError("no longer there")


def beats(log: Any, stop: int, at_s: int) -> list[int]:
    """Event times in seconds of the rows of a heartbeat at `at_s`."""
    part = Slice(
        stretches=(Stretch(partition=0, start=stop, read=stop, stop=stop),),
        rule=Rule(),
        pinned={},
        beats_us=at_s * SECOND_US,
    )
    rows = Rows(SCHEMA, "at").beat(part, log)
    return [row["at"].timestamp() for batch in rows for row in batch.to_pylist()]


def test_event_time_has_moved_on_as_long_as_the_stream_was_quiet() -> None:
    assert beats(HoleyLog(), stop=50, at_s=60) == [49 - 5 + 11]


@pytest.mark.parametrize("what", ["empty", "untimed"])
def test_the_last_position_may_hold_nothing(what: str) -> None:
    log = HoleyLog(**{what: (48, 49)})
    assert beats(log, stop=50, at_s=60) == [47 - 5 + 13]


def test_without_a_tuple_to_read_there_is_no_row() -> None:
    assert beats(LostLog(), stop=50, at_s=60) == []
    assert beats(HoleyLog(empty=tuple(range(50))), stop=50, at_s=60) == []


def test_before_the_first_tuple_it_is_the_time_of_the_heartbeat() -> None:
    assert beats(LostLog(), stop=0, at_s=60) == [60]

"""While a partition's leader was away, the library answered -1001 for an offset, without an error.

The extent of the topic became (-1001, -1001), and a batch planned from there would have been lost.
"""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from spillway.errors import SpillwayError
from spillway.logs.kafka_watch import TopicWatch
from spillway.ports import Span


def answered(offset: int) -> Any:
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(offset=offset))
    return {TopicPartition("t", 0): future}


def test_an_answer_without_an_offset_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    config = (("bootstrap.servers", "127.0.0.1:1"), ("log_level", "0"))
    watch = TopicWatch(config, "t", outage_s=2.0)
    offsets = {"now": 10}
    monkeypatch.setattr(watch, "_known_partitions", lambda: [0])
    monkeypatch.setattr(watch, "_ask", lambda specs: answered(offsets["now"]))
    known = (Span(partition=0, start=10, stop=10),)
    assert watch.extent(100.0) == known
    offsets["now"] = -1001
    assert watch.extent(101.0) == known
    with pytest.raises(SpillwayError, match="no answer from Kafka"):
        watch.extent(110.0)

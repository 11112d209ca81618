"""Sends each row as JSON to a topic, from the tasks themselves.

At least once: a batch is complete when every message is acknowledged, and a batch that is run
again after a crash is sent again. Every message carries its query and batch in the headers
`query` and `batch`, so that a reader can skip a batch that it has already seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.options import Option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

OPTIONS: tuple[Option, ...] = (
    Option("brokers", "text", "host:port, ...", required=True),
    Option("topic", "text", "the topic to write", required=True),
    Option(
        "key",
        "text",
        "the column whose value is the message key",
        without="messages have no key",
        pattern=r"^[A-Za-z_]\w*$",
        example="symbol",
    ),
)
GUARANTEE = (
    "at least once: a batch ends when every message is acknowledged; a batch that is run again is"
    " sent again. Headers `query` and `batch` let a reader skip what it has seen"
)
_SEND_S = 60.0
_producers: dict[str, Any] = {}  # of this worker, by brokers: connecting takes longer than sending


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    client()
    brokers, topic, key = given["brokers"], given["topic"], given["key"]

    def write(rows: DataFrame, batch_id: int) -> None:
        headers = {"query": query, "batch": str(batch_id)}
        messages = _messages(query, rows, key)
        messages.foreachPartition(lambda part: send(part, brokers, topic, headers))

    return lambda writer: writer.foreachBatch(write)


def _messages(query: str, rows: DataFrame, key: str | None) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    if key is not None and key not in rows.columns:
        raise SpillwayError(
            f"queries.{query}.sink.key is '{key}': the result has {', '.join(rows.columns)}"
        )
    keys = F.lit(None) if key is None else F.col(key)
    return rows.select(keys.cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))


def send(rows: Iterator[Row], brokers: str, topic: str, headers: dict[str, str]) -> None:
    """All rows of a partition; returns when the brokers have acknowledged every one."""
    failures: list[str] = []

    def reported(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(str(error))

    producer = _producer(brokers)
    for row in rows:
        while True:
            try:
                producer.produce(
                    topic, row["value"], row["key"], headers=headers, on_delivery=reported
                )
                break
            except BufferError:  # the local queue is full
                producer.poll(0.1)
        producer.poll(0)
    waiting = producer.flush(_SEND_S)
    if waiting or failures:
        reason = failures[0] if failures else f"no answer from {brokers} within {_SEND_S:.0f} s"
        raise SpillwayError(
            f"topic '{topic}' did not take {waiting + len(failures)} rows: {reason}"
        )


def _producer(brokers: str) -> Any:
    if brokers not in _producers:
        settings = {"bootstrap.servers": brokers, "enable.idempotence": True, "linger.ms": 5}
        _producers[brokers] = client().Producer(settings)
    return _producers[brokers]


def client() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise SpillwayError(
            "sink 'kafka' needs confluent-kafka: pip install 'spillway-spark[kafka]'"
        ) from error
    return confluent_kafka

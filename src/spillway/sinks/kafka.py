"""Sends each row as JSON to a topic, from the tasks themselves.

At least once: a batch is complete when every message is acknowledged, and a batch that is run
again after a crash is sent again. Every message carries its query and batch in the headers
`query` and `batch`, so that a reader can skip a batch that it has already seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.logs.kafka_options import checked_config
from spillway.options import Option
from spillway.redaction import remember

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
    Option(
        "kafka.NAME",
        "text",
        "passed to the client library, as with the source: security, `kafka.linger.ms`, ...",
    ),
)
GUARANTEE = (
    "at least once: a batch ends when every message is acknowledged; a batch that is run again is"
    " sent again. Headers `query` and `batch` let a reader skip what it has seen"
)
_SEND_S = 60.0
Settings = tuple[tuple[str, str], ...]
_producers: dict[Settings, Any] = {}  # of this worker: connecting takes longer than sending


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    client()
    remember(given["kafka.NAME"])
    settings, topic, key = _settings(given), given["topic"], given["key"]

    def write(rows: DataFrame, batch_id: int) -> None:
        headers = {"query": query, "batch": str(batch_id)}
        messages = _messages(query, rows, key)
        messages.foreachPartition(lambda part: send(part, settings, topic, headers))

    return lambda writer: writer.foreachBatch(write)


def _messages(query: str, rows: DataFrame, key: str | None) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    if key is not None and key not in rows.columns:
        raise SpillwayError(
            f"queries.{query}.sink.key is '{key}': the result has {', '.join(rows.columns)}"
        )
    keys = F.lit(None) if key is None else F.col(key)
    return rows.select(keys.cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))


def send(rows: Iterator[Row], settings: Settings, topic: str, headers: dict[str, str]) -> None:
    """All rows of a partition; returns when the brokers have acknowledged every one."""
    failures: list[str] = []

    def reported(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(str(error))

    remember(dict(settings))
    producer, brokers = _producer(settings), dict(settings)["bootstrap.servers"]
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


def _settings(given: Mapping[str, Any]) -> Settings:
    own = {"enable.idempotence": "true", "linger.ms": "5"}
    options = dict(checked_config(given["kafka.NAME"], own))
    return tuple(sorted({**options, "bootstrap.servers": given["brokers"]}.items()))


def _producer(settings: Settings) -> Any:
    if settings not in _producers:
        library = client()
        try:
            _producers[settings] = library.Producer(dict(settings))
        except library.KafkaException as error:
            raise SpillwayError(f"Kafka option refused: {error.args[0].str()}") from None
    return _producers[settings]


def client() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise SpillwayError(
            "sink 'kafka' needs confluent-kafka: pip install 'spillway-spark[kafka]'"
        ) from error
    return confluent_kafka

"""Results as JSON messages in a Kafka topic, sent by the tasks themselves.

At least once: a batch is complete when every message is acknowledged, and a batch that is run
again after a crash is sent again. Every message carries its query and batch in the headers
`query` and `batch`, so that a reader can skip a batch that it has already seen.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from spillway.errors import SpillwayError
from spillway.flow.flow import KafkaSink

_SEND_S = 60.0
_producers: dict[str, Any] = {}  # of this worker, by brokers: connecting takes longer than sending


def kafka_writer(name: str, sink: KafkaSink) -> Callable[[DataFrame, int], None]:
    _client()
    brokers, topic = sink.brokers, sink.topic

    def write(rows: DataFrame, batch_id: int) -> None:
        messages = rows.select(_key(name, rows, sink.key), F.to_json(F.struct("*")).alias("value"))
        headers = {"query": name, "batch": str(batch_id)}
        messages.foreachPartition(lambda part: send(part, brokers, topic, headers))

    return write


def _key(name: str, rows: DataFrame, column: str | None) -> Any:
    if column is None:
        return F.lit(None).cast("string").alias("key")
    if column not in rows.columns:
        raise SpillwayError(
            f"queries.{name}.sink.key is '{column}': the result has {', '.join(rows.columns)}"
        )
    return F.col(column).cast("string").alias("key")


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
        _producers[brokers] = _client().Producer(settings)
    return _producers[brokers]


def _client() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise SpillwayError(
            "sink 'kafka' needs confluent-kafka: pip install 'spillway-spark[kafka]'"
        ) from error
    return confluent_kafka

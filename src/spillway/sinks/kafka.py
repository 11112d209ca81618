"""Sends each row as JSON to a topic: from the tasks themselves, or exactly once from the driver.

At least once: a batch is complete when every message is acknowledged, and a batch that is run
again after a crash is sent again. Every message carries its query and batch in the headers
`query` and `batch`, so that a reader can skip a batch that it has already seen. Exactly once: a
batch is one transaction with its marker (`kafka_transactions`). A row that has its original arrival
(`_arrival`) keeps it as the message's time, so a gate behind the topic sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.logs.kafka_options import checked_config
from spillway.options import Option
from spillway.redaction import remember
from spillway.sinks.fence import Fence

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
        "exactly_once",
        "flag",
        "one transaction per batch, through the driver; for readers of committed records",
        without="where a stream of the flow reads the topic",
    ),
    Option(
        "markers",
        "text",
        "with `exactly_once`: the compacted topic that says which batch is out; made if missing",
        without="the topic's name and `-markers`",
    ),
    Option(
        "kafka.NAME",
        "text",
        "passed to the client library, as with the source: security, `kafka.linger.ms`, ...",
    ),
)
GUARANTEE = (
    "at least once: a batch ends when every message is acknowledged; a batch that is run again is"
    " sent again. Headers `query` and `batch` let a reader skip what it has seen. With"
    " `exactly_once` a batch is one transaction with its marker: a reader of committed records sees"
    " every row once"
)
ARRIVAL = "_arrival"
_SEND_S = 60.0
Settings = tuple[tuple[str, str], ...]
_producers: dict[Settings, Any] = {}  # of this worker: connecting takes longer than sending


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    return open_fenced_sink(query, given, None)


def open_fenced_sink(
    query: str, given: Mapping[str, Any], fence: Fence | None
) -> Callable[[Any], Any]:
    client()
    remember(given["kafka.NAME"])
    topic, key = given["topic"], given["key"]
    if given["exactly_once"]:
        from spillway.sinks.kafka_transactions import Transactions

        settings = dict(checked_config(given["kafka.NAME"], {}))
        settings["bootstrap.servers"] = given["brokers"]
        markers = given["markers"] or f"{topic}-markers"
        transactions = Transactions(settings, topic, markers, query, fence)

        def write_once(rows: DataFrame, batch_id: int) -> None:
            transactions.write(_messages(query, rows, key), batch_id)

        return lambda writer: writer.foreachBatch(write_once)
    if given["markers"] is not None:
        raise SpillwayError(
            f"queries.{query}.sink.markers is given without `exactly_once: true`: add it, or leave"
            " markers out"
        )
    at_least_once = _settings(given)

    def write(rows: DataFrame, batch_id: int) -> None:
        headers = {"query": query, "batch": str(batch_id)}
        messages = _messages(query, rows, key)
        messages.foreachPartition(lambda part: send(part, at_least_once, topic, headers))

    return lambda writer: writer.foreachBatch(write)


def _messages(query: str, rows: DataFrame, key: str | None) -> DataFrame:
    """Columns key, value, and the message's time in milliseconds (0: that of sending)."""
    from pyspark.sql import functions as F  # noqa: N812

    if key is not None and key not in rows.columns:
        raise SpillwayError(
            f"queries.{query}.sink.key is '{key}': the result has {', '.join(rows.columns)}"
        )
    keys = F.lit(None) if key is None else F.col(key)
    arrived = F.unix_millis(ARRIVAL) if ARRIVAL in rows.columns else F.lit(0)
    return rows.select(
        keys.cast("string").alias("key"),
        F.to_json(F.struct("*")).alias("value"),
        F.coalesce(arrived.cast("long"), F.lit(0)).alias("time_ms"),
    )


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
                    topic,
                    row["value"],
                    row["key"],
                    headers=headers,
                    timestamp=row["time_ms"],
                    on_delivery=reported,
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

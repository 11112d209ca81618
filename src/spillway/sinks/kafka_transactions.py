"""Exactly once into a topic: a batch is one transaction, and its marker is in it.

The marker says which batch of which checkpoint is out. A batch that is run again after a crash
finds its marker and is skipped: whether the commit got through is told by the log, never guessed.
All lives of a query on one checkpoint share one transactional id: whoever takes it over ends what a
frozen one has open, and the frozen one can commit nothing more. Who was overtaken reads that from
the marker's epoch and claims nothing back.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spillway.errors import SpillwayError
from spillway.sinks.fence import Fence, overtaken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWER_S = 30.0  # brokers that take longer are away
_NOTHING_OUT = -1
_ATTEMPTS, _CLAIMED_S = 5, 2.0  # when fenced; until then a later one has claimed the query
_OPEN_MS = "30000"  # a frozen writer that nobody takes over holds readers up for so long
_MARKERS = {"cleanup.policy": "compact", "segment.ms": "3600000"}
Settings = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """The last batch that is out, of a checkpoint, and the epoch of who wrote it."""

    checkpoint: str
    batch: int = _NOTHING_OUT
    epoch: int = 0


class _ContestedError(SpillwayError):
    """Someone else has taken the transactional id, or may have."""


class Transactions:
    """One query's writer; it connects when the first batch comes."""

    def __init__(
        self, settings: Settings, topic: str, markers: str, query: str, fence: Fence | None
    ) -> None:
        self._settings, self._topic, self._markers = dict(settings), topic, markers
        self._query, self._fence = query, fence
        self._producer: Any = None
        self._out = _NOTHING_OUT

    def write(self, messages: DataFrame, batch_id: int) -> None:
        """Returns when the batch is committed, or was before."""
        checkpoint = _checkpoint_id(messages)
        for attempt in range(_ATTEMPTS):
            try:
                if self._producer is None:
                    self._connect(checkpoint)
                if batch_id > self._out:
                    headers = {"query": self._query, "batch": str(batch_id)}
                    marker = Marker(checkpoint=checkpoint, batch=batch_id, epoch=self._epoch)
                    self._committed(marker, messages.toArrow(), headers)
                    self._out = batch_id
                return
            except _ContestedError:
                if attempt == _ATTEMPTS - 1:
                    raise
                self._look_who(self._name(checkpoint))

    def _look_who(self, name: str) -> None:
        """Someone took the transactional id. Whoever was given the query later claims it at once;
        one from before may have come in between, and is fenced again."""
        from confluent_kafka import KafkaException

        time.sleep(_CLAIMED_S)
        try:
            self._require_mine(self._last_marker(name))
        except KafkaException as error:
            raise self._refused(error) from error

    @property
    def _epoch(self) -> int:
        return 0 if self._fence is None else self._fence.epoch

    def _name(self, checkpoint: str) -> str:
        """Of the lineage: what a cluster calls it, else the checkpoint's own id."""
        fence = self._fence
        return checkpoint if fence is None else f"{fence.owner}/{fence.generation}"

    def _connect(self, checkpoint: str) -> None:
        """Looks before it fences anybody: one that was overtaken must not come back."""
        from confluent_kafka import KafkaException, Producer

        name = self._name(checkpoint)
        try:
            _require_markers(self._settings, self._markers)
            self._require_mine(self._last_marker(name))
            producer = Producer(
                {
                    "transaction.timeout.ms": _OPEN_MS,
                    "linger.ms": "5",
                    "log_level": "2",  # what matters reaches the user as an error
                    **self._settings,
                    "transactional.id": f"spillway/{self._topic}/{name}",
                }
            )
            producer.init_transactions(ANSWER_S)
            found = self._last_marker(name)
        except KafkaException as error:
            raise self._refused(error) from error
        self._require_mine(found)
        self._producer, self._out = producer, _NOTHING_OUT
        if found is not None and found.checkpoint == checkpoint:
            self._out = found.batch
        if self._fence is not None and (found is None or found.epoch < self._epoch):
            claim = Marker(checkpoint=checkpoint, batch=self._out, epoch=self._epoch)
            self._committed(claim, None, {})

    def _require_mine(self, found: Marker | None) -> None:
        if self._fence is not None and found is not None and found.epoch > self._fence.epoch:
            raise overtaken(self._fence)

    def _committed(self, marker: Marker, rows: Any, headers: Mapping[str, str]) -> None:
        """All or nothing. After a failure the next attempt connects anew and reads the marker."""
        from confluent_kafka import KafkaException

        producer, self._producer = self._producer, None
        try:
            producer.begin_transaction()
            for key, value, time_ms in _fields(rows):
                _produce(producer, self._topic, value, key, headers=headers, timestamp=time_ms)
            body = json.dumps({f: getattr(marker, f) for f in ("checkpoint", "batch", "epoch")})
            _produce(producer, self._markers, body, self._name(marker.checkpoint), partition=0)
            producer.commit_transaction(ANSWER_S)
        except KafkaException as error:
            _abort(producer, error)
            raise self._refused(error) from error
        self._producer = producer

    def _refused(self, error: Any) -> SpillwayError:
        from confluent_kafka import KafkaError

        code, brokers = error.args[0].code(), self._settings["bootstrap.servers"]
        fenced = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
        # a broker that gives the id away while a commit is under way may answer "unknown"
        contested = self._fence is not None and code in (*fenced, KafkaError.UNKNOWN)
        kind = _ContestedError if contested else SpillwayError
        return kind(
            f"queries.{self._query}.sink: Kafka at {brokers} did not take a batch for topic"
            f" '{self._topic}': {error.args[0].str()}; it is run again as a whole"
        )

    def _last_marker(self, name: str) -> Marker | None:
        last = None
        for key, value in _committed_records(self._settings, self._markers):
            if key == name.encode() and value is not None:
                body = json.loads(value)
                last = Marker(
                    checkpoint=body["checkpoint"], batch=body["batch"], epoch=body["epoch"]
                )
        return last


def _produce(producer: Any, topic: str, value: str, key: str | None, **more: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, key, **more)
            break
        except BufferError:  # the local queue is full
            producer.poll(0.1)
    producer.poll(0)


def _abort(producer: Any, error: Any) -> None:
    """So that readers need not wait for the time-out of what was left open."""
    from confluent_kafka import KafkaException

    if error.args[0].fatal():
        return
    try:
        producer.abort_transaction(ANSWER_S)
    except KafkaException:
        return  # away as well: the next producer of this id ends it


def _fields(rows: Any) -> Iterator[tuple[str | None, str, int]]:
    for batch in () if rows is None else rows.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _checkpoint_id(rows: DataFrame) -> str:
    """Spark's id of the query, which it keeps in the checkpoint."""
    found = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if found is None:
        raise SpillwayError("an exactly-once sink is written by a streaming query only")
    return found


def _require_markers(settings: Settings, topic: str) -> None:
    """Made where it is missing; one that is not compacted would forget what is out."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AdminClient,
        ConfigResource,
        NewTopic,
    )

    admin = AdminClient(dict(settings))
    if topic not in admin.list_topics(timeout=ANSWER_S).topics:
        [made] = admin.create_topics([NewTopic(topic, 1, -1, config=_MARKERS)]).values()
        try:
            made.result(ANSWER_S)
        except KafkaException as error:
            if "already exists" not in error.args[0].str():
                raise
        return
    [found] = admin.describe_configs([ConfigResource("topic", topic)]).values()
    policy = found.result(ANSWER_S)["cleanup.policy"].value
    if policy != "compact":
        raise SpillwayError(
            f"topic '{topic}' of markers has cleanup.policy '{policy}': it must be 'compact', or"
            " batches would be written twice after a long rest; set it, or name another topic with"
            " the option markers"
        )


def _committed_records(
    settings: Settings, topic: str
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """What stands in a topic of one partition now, however fast others go on writing to it."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    consumer = Consumer(
        {
            **settings,
            "log_level": "2",
            "group.id": f"spillway-{uuid.uuid4().hex}",  # never joined
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        place = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=ANSWER_S)
        consumer.assign([place])
        heard_s = time.monotonic()
        while time.monotonic() - heard_s < ANSWER_S:
            message = consumer.poll(0.5)
            if message is None:
                continue
            heard_s, error = time.monotonic(), message.error()
            if error is None:
                yield message.key(), message.value()
                if (message.offset() or 0) >= end - 1:
                    return
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise KafkaException(error)
        raise SpillwayError(f"topic '{topic}' was not read to its end: no answer in {ANSWER_S:g} s")
    finally:
        consumer.close()

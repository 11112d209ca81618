"""A control log in a compacted topic of one partition.

Kafka has no append under an expected position. It has something as good: of all producers with one
transactional id the newest fences the others, for ever, and ends what they had open. So whoever
appends under a position first makes itself the newest, and then looks whether the log has gone on:
from there on nobody else can have written, or its own commit fails. Reports, which anybody appends
anywhere, go out without a transaction. Readers see committed records only.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from spillway.errors import SpillwayError
from spillway.hosts.cluster.control_log import AwayError, OvertakenError
from spillway.hosts.cluster.records import Entries, Placed, Record, decoded, encoded

ANSWER_S = 5.0  # a broker that takes longer is away
_TOPIC = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.2",
    "min.compaction.lag.ms": str(600_000),  # longer than any lease: who reads on misses no report
    "segment.bytes": str(16 << 20),
    "segment.ms": str(3_600_000),
}
_SILENT = logging.getLogger("spillway.control")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
Answer = TypeVar("Answer")


class KafkaLog:
    """`settings` are librdkafka's, brokers and security among them."""

    def __init__(
        self, settings: Mapping[str, str], topic: str, cluster: str, answer_s: float = ANSWER_S
    ) -> None:
        self._topic, self._cluster, self._answer_s = topic, cluster, answer_s
        self._settings: dict[str, Any] = {**settings, "logger": _SILENT}
        self._brokers = settings.get("bootstrap.servers", "")
        self._consumer: Any = None
        self._anywhere: Any = None  # a producer without transactions
        self._owner: Any = None  # the producer that fenced all others, as far as we know
        self._owner_end: int | None = None  # behind what it wrote; None: the log is to be read

    def read(self, position: int) -> Entries:
        from confluent_kafka import TopicPartition

        consumer = self._reader()
        place = TopicPartition(self._topic, 0, position)
        _, end = self._asked(lambda: consumer.get_watermark_offsets(place, timeout=self._answer_s))
        if end < position:
            raise self._away(
                f"topic '{self._topic}' ends at {end}, but was read up to {position}: a replica"
                " lags behind, or the topic was made anew (then start all of the cluster anew)"
            )
        if end == position:
            return Entries(placed=(), next=position)
        try:
            self._asked(lambda: consumer.assign([place]))
            return self._read_up_to(consumer, position, end)
        finally:
            self._asked(consumer.unassign)

    def append(self, record: Record, expected: int | None = None) -> int:
        if expected is None:
            return self._append_anywhere(record)
        owner = self._claimed()
        if self._owner_end is None:
            entries = self.read(expected)
            if entries.placed or entries.skipped:
                raise OvertakenError(f"topic '{self._topic}' goes on behind {expected}")
        elif expected < self._owner_end:
            raise OvertakenError(f"topic '{self._topic}' goes on behind {expected}")
        try:
            self._owner_end = self._committed(owner, record)
        except Exception:
            self._owner = self._owner_end = None  # the next append claims it anew
            raise
        return self._owner_end

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._owner = self._anywhere = None

    # -- reading

    def _reader(self) -> Any:
        if self._consumer is None:
            from confluent_kafka import Consumer

            self._require_topic()
            self._consumer = Consumer(
                {
                    **self._settings,
                    "group.id": f"spillway-{uuid.uuid4().hex}",  # never joined
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 20,
                }
            )
        return self._consumer

    def _read_up_to(self, consumer: Any, position: int, end: int) -> Entries:
        placed: list[Placed] = []
        skipped: list[str] = []
        deadline_s = time.monotonic() + self._answer_s
        while time.monotonic() < deadline_s:
            message = self._asked(lambda: consumer.poll(0.1))
            if message is None:
                continue
            deadline_s = time.monotonic() + self._answer_s
            if (error := message.error()) is None:
                found = self._record(message)
                if isinstance(found, str):
                    skipped.append(found)
                else:
                    placed.append(Placed(position=message.offset(), record=found))
            elif error.code() != _code("_PARTITION_EOF"):
                raise self._away(error)
            elif message.offset() >= end:
                at = max(position, message.offset())
                return Entries(placed=tuple(placed), next=at, skipped=tuple(skipped))
        raise self._away(f"no answer within {self._answer_s:g} s")

    def _record(self, message: Any) -> Record | str:
        where = f"topic '{self._topic}', offset {message.offset()}"
        key = message.key()
        if message.value() is None and key is not None:
            text = key.decode(errors="replace")
            return Record(cluster=self._cluster, key=text, epoch=0, writer="", body=None)
        return decoded(message.value() or b"", self._cluster, where)

    # -- writing

    def _append_anywhere(self, record: Record) -> int:
        if self._anywhere is None:
            from confluent_kafka import Producer

            self._require_topic()
            timeout = {"delivery.timeout.ms": round(self._answer_s * 1e3), "linger.ms": 0}
            made = {**self._settings, **timeout, "acks": "all", "enable.idempotence": True}
            self._anywhere = self._asked(lambda: Producer(made))
        return self._sent(self._anywhere, record)

    def _claimed(self) -> Any:
        if self._owner is None:
            from confluent_kafka import Producer

            self._require_topic()
            self._owner_end = None
            owner = self._asked(
                lambda: Producer(
                    {
                        **self._settings,
                        "transactional.id": f"spillway/{self._cluster}/{self._topic}",
                        "transaction.timeout.ms": round(2e3 * self._answer_s),
                        "delivery.timeout.ms": round(1e3 * self._answer_s),
                        "linger.ms": 0,
                    }
                )
            )
            self._asked(lambda: owner.init_transactions(self._answer_s))
            self._owner = owner
        return self._owner

    def _committed(self, owner: Any, record: Record) -> int:
        def commit() -> int:
            owner.begin_transaction()
            behind = self._sent(owner, record)
            owner.commit_transaction(self._answer_s)
            return behind

        behind = self._asked(commit)
        self._require_seen(behind)
        return behind

    def _require_seen(self, behind: int) -> None:
        """A commit is acknowledged a moment before readers of committed records see it."""
        from confluent_kafka import TopicPartition

        reader, place = self._reader(), TopicPartition(self._topic, 0)
        deadline_s = time.monotonic() + self._answer_s
        while time.monotonic() < deadline_s:
            _, end = self._asked(
                lambda: reader.get_watermark_offsets(place, timeout=self._answer_s)
            )
            if end >= behind:
                return
            time.sleep(0.002)
        raise self._away(f"a committed record is not seen after {self._answer_s:g} s")

    def _sent(self, producer: Any, record: Record) -> int:
        """The position behind the record, once every replica in sync has it."""
        answers: list[tuple[Any, Any]] = []
        value = None if record.body is None else encoded(record)

        def answered(error: Any, message: Any) -> None:
            answers.append((error, message))

        def produce() -> None:
            producer.produce(
                self._topic, value, record.key.encode(), partition=0, on_delivery=answered
            )

        self._asked(produce)
        waiting = self._asked(lambda: producer.flush(self._answer_s))
        if waiting or not answers:
            raise self._away(f"no answer within {self._answer_s:g} s")
        [(error, message)] = answers
        if error is not None:
            raise self._refused(error)
        return int(message.offset()) + 1

    def _require_topic(self) -> None:
        """Made where it is missing; one that is not compacted would forget what holds."""
        from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
        from confluent_kafka.cimpl import NewTopic

        admin, answer_s = AdminClient(self._settings), self._answer_s
        there = self._asked(lambda: admin.list_topics(timeout=answer_s).topics)
        if self._topic not in there:
            topic = NewTopic(self._topic, 1, -1, config=_TOPIC)
            [made] = admin.create_topics([topic], request_timeout=answer_s).values()
            try:
                self._asked(lambda: made.result(2 * answer_s))
            except AwayError as error:
                if "already exists" not in str(error):
                    raise
            return
        resource = ConfigResource("topic", self._topic)
        [found] = admin.describe_configs([resource], request_timeout=answer_s).values()
        policy = self._asked(lambda: found.result(2 * answer_s))["cleanup.policy"].value
        partitions = len(there[self._topic].partitions)
        if policy != "compact" or partitions > 1:
            raise SpillwayError(
                f"control topic '{self._topic}' has {partitions} partitions and cleanup.policy"
                f" '{policy}': it must have 1 and 'compact'; remove it, then it is made anew"
            )

    # -- errors

    def _asked(self, act: Callable[[], Answer]) -> Answer:
        """Kafka's own exceptions in ours."""
        from confluent_kafka import KafkaException

        try:
            return act()
        except KafkaException as error:
            raise self._refused(error.args[0]) from error
        except SystemError as error:  # a delivery was reported while a fatal error was raised
            if isinstance(error.__cause__, KafkaException):
                raise self._refused(error.__cause__.args[0]) from error
            raise

    def _refused(self, error: Any) -> SpillwayError:
        fenced = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
        if error.code() in map(_code, fenced):
            self._owner = self._owner_end = None
            return OvertakenError(f"topic '{self._topic}': a newer writer has taken over")
        return self._away(error)

    def _away(self, reason: object) -> AwayError:
        return AwayError(f"control log at {self._brokers} does not answer: {reason}")


def _code(name: str) -> int:
    from confluent_kafka import KafkaError

    return int(getattr(KafkaError, name))

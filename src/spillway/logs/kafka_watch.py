"""What the planner asks the brokers: partitions, offsets, offsets by time, and group commits."""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import OffsetSpec as _OffsetSpec  # type: ignore[attr-defined]

from spillway.errors import SpillwayError
from spillway.logs.kafka_options import Config
from spillway.logs.saying import say_once
from spillway.ports import Span

OffsetSpec: Any = _OffsetSpec  # untyped in the library
REQUEST_TIMEOUT_S = 5.0
PARTITIONS_EVERY_S = 5.0
EARLIEST_EVERY_S = 5.0
_CONSUMERS = ("fetch.wait.max.ms", "queued.max.messages.kbytes", "group.id", "isolation.level")
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_SILENT = (  # the brokers are there, but do not say which topic it is
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError._UNSUPPORTED_FEATURE,
)
_NO_ID = "A" * 22  # of brokers that know no ids: all zeroes


def admin_of(config: Config, complain: Callable[[KafkaError], None] | None = None) -> Any:
    """A client for questions about topics; it reads nothing."""
    given: dict[str, Any] = {k: v for k, v in config if k not in _CONSUMERS}
    if complain is not None:
        given["error_cb"] = complain
    try:
        return AdminClient(given)
    except KafkaException as error:
        raise SpillwayError(f"Kafka option refused: {error.args[0].str()}") from error


def known_partitions(admin: Any, name: str, servers: str) -> list[int]:
    topic = admin.list_topics(name, timeout=REQUEST_TIMEOUT_S).topics[name]
    if topic.error is not None or not topic.partitions:
        raise SpillwayError(
            f"Kafka at {servers} has no topic '{name}': create it, or correct option 'topic'"
        )
    return sorted(topic.partitions)


class TopicWatch:
    """Extent of a topic. During an outage the last known one stands, until `outage_s` is over."""

    def __init__(
        self, config: Config, topic: str, outage_s: float, topic_id: str | None = None
    ) -> None:
        given = dict(config)
        self._servers = given["bootstrap.servers"]
        committed = given.get("isolation.level", "read_committed") == "read_committed"
        self._isolation = (
            IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._refusal = ""
        self._admin = admin_of(config, self._complain)
        self._topic = topic
        self._outage_s = outage_s
        self._topic_id = topic_id  # of the topic that is meant; None: whatever has the name
        self._partitions: list[int] = []
        self._earliest: dict[int, int] = {}
        self._extent: tuple[Span, ...] = ()
        self._partitions_due_s = self._earliest_due_s = float("-inf")
        self._failing_since_s: float | None = None

    def extent(self, now_s: float) -> tuple[Span, ...]:
        try:
            self._refresh(now_s)
        except KafkaException as error:
            self._tolerate(now_s, error)
        else:
            self._failing_since_s, self._refusal = None, ""
        return self._extent

    def topic_id(self) -> str | None:
        """None where no broker says it. Raises where it is another topic than the one meant,
        which is the first one seen where none was named."""
        try:
            found = self._described_id()
        except KafkaException as error:
            if error.args[0].code() in _SILENT:
                say_once(
                    f"Kafka does not tell the id of topic '{self._topic}' ({error.args[0].str()}):"
                    " should it be made anew under a query, that may go unnoticed"
                )
            return None
        if found != _NO_ID and self._topic_id not in (None, found):
            raise SpillwayError(
                f"topic '{self._topic}' was made anew: this checkpoint belongs to the one with id"
                f" {self._topic_id}, now it is {found}; start with a new checkpoint"
            )
        if found == _NO_ID:
            return None
        self._topic_id = found
        return found

    def first_at_or_after(self, partition: int, times_s: list[float]) -> list[int]:
        """For each time, the first offset whose record is not older; -1 when there is none."""
        asked = [
            self._ask({partition: OffsetSpec.for_timestamp(int(time_s * 1000))})
            for time_s in times_s
        ]
        try:
            return [self._answers(futures)[partition] for futures in asked]
        except KafkaException:
            return [-1] * len(times_s)  # ages are coarser for a while, nothing else

    def position_at(self, partition: int, time_ms: int) -> int | None:
        """The first offset whose record is not older; None when there is none yet."""
        try:
            spec = OffsetSpec.for_timestamp(time_ms)
            at: int = self._answers(self._ask({partition: spec}))[partition]
        except KafkaException as error:
            raise SpillwayError(
                f"Kafka at {self._servers} does not say where topic '{self._topic}' was at"
                f" {time_ms} ({error.args[0].str()}): are the brokers up?"
            ) from error
        return at if at >= 0 else None

    def commit(self, group: str, stops: Mapping[int, int]) -> None:
        """Group offsets for lag tools. Sent, not waited for: nothing here depends on them."""
        places = [Partition(self._topic, partition, stop) for partition, stop in stops.items()]
        self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])

    def _refresh(self, now_s: float) -> None:
        # A clock that was set back makes a due time lie too far ahead: then it is due now.
        if not 0.0 < self._partitions_due_s - now_s <= PARTITIONS_EVERY_S:
            self._partitions = self._known_partitions()
            self._partitions_due_s = now_s + PARTITIONS_EVERY_S
            self._earliest_due_s = now_s
            self._require_the_same()
        latest = self._offsets(self._ask(dict.fromkeys(self._partitions, OffsetSpec.latest())))
        known = {span.partition: span.stop for span in self._extent}
        fell = any(stop < known.get(partition, 0) for partition, stop in latest.items())
        if fell or self._failing_since_s is not None:  # it may have been made anew meanwhile
            self._require_the_same()
        if not 0.0 < self._earliest_due_s - now_s <= EARLIEST_EVERY_S:
            earliest = self._ask(dict.fromkeys(self._partitions, OffsetSpec.earliest()))
            self._earliest = self._offsets(earliest)
            self._earliest_due_s = now_s + EARLIEST_EVERY_S
        self._extent = tuple(
            Span(partition=partition, start=min(self._earliest[partition], stop), stop=stop)
            for partition, stop in sorted(latest.items())
        )

    def _require_the_same(self) -> None:
        if self._topic_id is not None:
            self.topic_id()

    def _described_id(self) -> str:
        asked = TopicCollection([self._topic])
        answers = self._admin.describe_topics(asked, request_timeout=REQUEST_TIMEOUT_S)
        return str(answers[self._topic].result().topic_id)

    def _known_partitions(self) -> list[int]:
        return known_partitions(self._admin, self._topic, self._servers)

    def _ask(self, specs: Mapping[int, Any]) -> Any:
        asked = {Partition(self._topic, partition): spec for partition, spec in specs.items()}
        return self._admin.list_offsets(
            asked, isolation_level=self._isolation, request_timeout=REQUEST_TIMEOUT_S
        )

    def _offsets(self, futures: Any) -> dict[int, int]:
        """Places in the topic. While its leader is away, the library may answer with none."""
        found = self._answers(futures)
        if any(offset < 0 for offset in found.values()):
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return found

    def _answers(self, futures: Any) -> dict[int, int]:
        return {place.partition: done.result().offset for place, done in futures.items()}

    def _tolerate(self, now_s: float, error: KafkaException) -> None:
        """Only a first answer has nothing to stand on; later ones may fail for a while."""
        since_s = now_s if self._failing_since_s is None else self._failing_since_s
        self._failing_since_s = min(since_s, now_s)
        if self._extent and now_s - self._failing_since_s <= self._outage_s:
            return
        silent_s = self._outage_s if self._extent else REQUEST_TIMEOUT_S
        self._admin.poll(0)  # the client's complaints
        if self._refusal:
            raise SpillwayError(
                f"Kafka at {self._servers} and this client refuse each other ({self._refusal}):"
                " check options 'kafka.security.protocol', 'kafka.sasl.*' and 'kafka.ssl.*'"
            ) from error
        raise SpillwayError(
            f"no answer from Kafka at {self._servers} for {silent_s:g} s ({error.args[0].str()}):"
            " are the brokers up, and is option 'kafka.bootstrap.servers' right?"
        ) from error

    def _complain(self, error: KafkaError) -> None:
        """A wrong password looks like a broker that is down, but for what is told here."""
        if error.code() in _REFUSED:
            self._refusal = error.str().rstrip(" .")

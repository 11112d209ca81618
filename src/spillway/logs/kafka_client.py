"""Connections to Kafka: options, readers that a worker process keeps, fetching a range."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from spillway.errors import SpillwayError
from spillway.logs.intervals import Intervals, interval
from spillway.logs.kafka_options import Config, checked_config
from spillway.logs.schema import BATCH_ROWS
from spillway.ports import Span

_POLL_S = 0.2
_ENDS_TIMEOUT_S = 5.0
_DEFAULTS = {
    "log_level": "2",  # what matters reaches the user as an error
    "fetch.wait.max.ms": "5",  # only existing records are read: never wait for more
    "fetch.message.max.bytes": "262144",  # a quarter of the default: small ranges in 1 to 3 ms
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "2",  # a full queue holds fetching up for a whole second otherwise
    "socket.connection.setup.timeout.ms": "5000",
    "reconnect.backoff.max.ms": "1000",
}
_READER = {
    "group.id": "spillway",  # asked for by the library; readers never join or commit
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}


def client_config(given: Mapping[str, str]) -> Config:
    """What options named `kafka.` say, for the client library (librdkafka's names)."""
    return checked_config(given, _DEFAULTS)


class Reader:
    """One consumer, assigned by hand to the range that is read."""

    def __init__(self, config: Config) -> None:
        self._servers = dict(config)["bootstrap.servers"]
        self._complaint = ""
        try:
            self._consumer = Consumer({**dict(config), **_READER, "error_cb": self._complain})
        except KafkaException as error:
            raise SpillwayError(f"Kafka option refused: {error.args[0].str()}") from error

    def fetch(
        self, span: Span, topic: str, outage_s: float, lost: list[Intervals]
    ) -> Iterator[Sequence[Any]]:
        """The records of a span that exist, in lists; an outage is waited for.

        What has gone since it was planned is added to `lost`; the rest is still read. Nothing
        outside of the span comes out, wherever the log begins and ends by now.
        """
        following, heard_s, astray = span.start, monotonic(), False
        self._consumer.assign([TopicPartition(topic, span.partition, following)])
        while following < span.stop:
            if not astray:
                records, ended, astray = self._next(following, span.stop)
                if records:
                    following = records[-1].offset() + 1
                    yield records
                    heard_s = monotonic()  # a slow reader is no silence
                if ended:
                    break
            silent = monotonic() - heard_s > outage_s
            if not (astray or silent):
                continue
            if (ends := self._ends(topic, span.partition)) is None:
                sleep(_POLL_S)
            left = following if ends is None else _first_left(following, span, ends, silent)
            if left > following:
                lost.append(interval(following, left))
                following, heard_s = left, monotonic()
            elif silent:
                raise SpillwayError(
                    f"no records from Kafka at {self._servers} for {outage_s:g} s: topic '{topic}',"
                    f" partition {span.partition}, offset {following}; are the brokers up?"
                    f"{self._complaint}"
                )
            if astray and ends is not None:
                self._consumer.assign([TopicPartition(topic, span.partition, following)])
                astray = False

    def rest(self) -> None:
        """Stops fetching ahead: the next range may be another worker's."""
        self._consumer.unassign()

    def _next(self, following: int, stop: int) -> tuple[list[Any], bool, bool]:
        """Records of [following, stop); whether that was all; whether the log has no such place."""
        records: list[Any] = []
        messages: Sequence[Any] = self._consumer.consume(min(BATCH_ROWS, stop - following), _POLL_S)
        for message in messages:
            error = message.error()
            if error is None and following <= message.offset() < stop:
                records.append(message)
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                if message.offset() >= stop:
                    return records, True, False
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                return records, False, True
            else:
                self._complain(error)
        return records, False, False

    def _ends(self, topic: str, partition: int) -> tuple[int, int] | None:
        """The first offset of the log and the next one to be written; None: no broker answers."""
        try:
            place = TopicPartition(topic, partition)
            found = self._consumer.get_watermark_offsets(place, timeout=_ENDS_TIMEOUT_S)
        except KafkaException as error:
            self._complain(error.args[0])
            return None
        return found if found and min(found) >= 0 else None

    def _complain(self, error: Any) -> None:
        """Kept for the message of an outage; the client library goes on trying by itself."""
        self._complaint = f" ({error.str()})"


def _first_left(following: int, span: Span, ends: tuple[int, int], silent: bool) -> int:
    """Where a log with these ends still has something of the span: later where it was cut at the
    start, nowhere where it ends before, as one does that was made anew. An end just here may be
    that of a replica that lags: it is waited for."""
    first, end = ends
    if following > end or (silent and following == end):
        return span.stop
    return min(max(following, first), span.stop)


_idle: dict[tuple[int, Config], list[Reader]] = {}


@contextmanager
def borrowed_reader(config: Config) -> Iterator[Reader]:
    """A reader of this process, connected already if it has been used before."""
    idle = _idle.setdefault((os.getpid(), config), [])
    reader = idle.pop() if idle else Reader(config)
    try:
        yield reader
    finally:
        reader.rest()
        idle.append(reader)

"""Connections to Kafka: options, readers that a worker process keeps, fetching a range."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from spillway.errors import SpillwayError
from spillway.logs.schema import BATCH_ROWS
from spillway.ports import Span

Config = tuple[tuple[str, str], ...]  # hashable: the key of a process's readers

_POLL_S = 0.2
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
_JAVA_ONLY = {
    "sasl.jaas.config": "kafka.sasl.username and kafka.sasl.password",
    "ssl.truststore.location": "kafka.ssl.ca.location (a PEM file)",
    "ssl.keystore.location": "kafka.ssl.certificate.location and kafka.ssl.key.location",
}


def client_config(given: Mapping[str, str]) -> Config:
    """What options named `kafka.` say, for the client library (librdkafka's names)."""
    for name, instead in _JAVA_ONLY.items():
        if name in given:
            raise SpillwayError(f"option 'kafka.{name}' is for Java clients only: use {instead}")
    return tuple(sorted({**_DEFAULTS, **given}.items()))


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
        self, span: Span, topic: str, outage_s: float, lost: list[tuple[int, int]]
    ) -> Iterator[Sequence[Any]]:
        """The records of a span that exist, in lists; an outage is waited for.

        What was truncated since it was planned is added to `lost`; the rest is still read.
        """
        self._consumer.assign([TopicPartition(topic, span.partition, span.start)])
        following, heard_s, truncated = span.start, monotonic(), False
        while following < span.stop:
            messages = self._consumer.consume(min(BATCH_ROWS, span.stop - following), _POLL_S)
            records, ended, reset = self._sorted_out(messages, span.stop)
            truncated = truncated or reset
            if truncated and (records or ended):
                lost.append((following, records[0].offset() if records else span.stop))
                truncated = False
            if records:
                following, heard_s = records[-1].offset() + 1, monotonic()
                yield records
            if ended:
                break
            if monotonic() - heard_s > outage_s:
                raise SpillwayError(
                    f"no records from Kafka at {self._servers} for {outage_s:g} s: topic '{topic}',"
                    f" partition {span.partition}, offset {following}; are the brokers up?"
                    f"{self._complaint}"
                )

    def rest(self) -> None:
        """Stops fetching ahead: the next range may be another worker's."""
        self._consumer.unassign()

    def _sorted_out(self, messages: Sequence[Any], stop: int) -> tuple[list[Any], bool, bool]:
        """Records below `stop`; whether that was all; whether the log starts later by now."""
        records: list[Any] = []
        reset = False
        for message in messages:
            error = message.error()
            if error is None and message.offset() < stop:
                records.append(message)
            elif error is None or error.code() == KafkaError._PARTITION_EOF:
                if message.offset() >= stop:
                    return records, True, reset
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                there = TopicPartition(message.topic(), message.partition(), OFFSET_BEGINNING)
                self._consumer.assign([there])
                reset = True
            else:
                self._complain(error)
        return records, False, reset

    def _complain(self, error: Any) -> None:
        """Kept for the message of an outage; the client library goes on trying by itself."""
        self._complaint = f" ({error.str()})"


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

"""Connections to Kafka: options, readers that a worker process keeps, fetching a range."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import Protocol

import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.logs.dead_letters import Malformed
from spillway.logs.intervals import Intervals, Positions, interval
from spillway.logs.kafka_form import Form
from spillway.logs.kafka_options import Config, checked_config
from spillway.logs.saying import say_once
from spillway.ports import Span

POLL_S = 0.2
ENDS_TIMEOUT_S = 5.0
_DEFAULTS = {
    "check.crcs": "true",  # as the Java client does: otherwise what a disk garbled are records
    "log_level": "2",  # what matters reaches the user as an error
    "fetch.wait.max.ms": "5",  # only existing records are read: never wait for more
    "fetch.message.max.bytes": "262144",  # a quarter of the default: small ranges in 1 to 3 ms
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "2",  # a full queue holds fetching up for a whole second otherwise
    "socket.connection.setup.timeout.ms": "5000",
    "reconnect.backoff.max.ms": "1000",
}
READER = {
    "group.id": "spillway",  # asked for by the library; readers never join or commit
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}


def client_config(given: Mapping[str, str]) -> Config:
    """What options named `kafka.` say, for the client library (librdkafka's names)."""
    return checked_config(given, _DEFAULTS)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one call to the client brought."""

    following: int  # the next offset to ask for
    ended: bool = False  # nothing of the range is left
    astray: bool = False  # the log has no such offset
    rows: pa.RecordBatch | None = None  # with `_arrival`
    malformed: list[Malformed] = field(default_factory=list)
    reached: int | None = None  # behind the last wanted record


class Client(Protocol):
    """One consumer, assigned by hand to the range that is read."""

    complaint: str  # kept for the message of an outage; the library goes on trying by itself

    def assign(self, topic: str, partition: int, offset: int) -> None: ...

    def unassign(self) -> None: ...

    def piece(self, form: Form, following: int, stop: int, wanted: Positions | None) -> Piece:
        """Wanted records of [following, stop) that come within a moment."""
        ...

    def ends(self, topic: str, partition: int) -> tuple[int, int] | None:
        """The first offset of the log and the next one to be written; None: no broker answers."""
        ...


class BrokenReaderError(Exception):
    """The native reader cannot go on; what it has handed over stands."""


class Reader:
    def __init__(self, config: Config, *, native: bool) -> None:
        self._config = config
        self._servers = dict(config)["bootstrap.servers"]
        self._client = _native(config) if native else _python(config)

    def fetch(
        self,
        form: Form,
        span: Span,
        wanted: Positions | None,
        outage_s: float,
        lost: list[Intervals],
    ) -> Iterator[Piece]:
        """Pieces with the wanted records of a span that exist; an outage is waited for.

        What has gone since it was planned is added to `lost`; the rest is still read. Nothing
        outside of the span comes out, wherever the log begins and ends by now.
        """
        left = span
        try:
            for piece in self._pieces(form, span, wanted, outage_s, lost):
                yield piece
                left = replace(span, start=piece.following)
        except BrokenReaderError as error:
            say_once(f"the native reader failed ({error}): the query goes on without it")
            self._client = _python(self._config)
            yield from self._pieces(form, left, wanted, outage_s, lost)

    def rest(self) -> None:
        """Stops fetching ahead: the next range may be another worker's."""
        self._client.unassign()

    def _pieces(
        self,
        form: Form,
        span: Span,
        wanted: Positions | None,
        outage_s: float,
        lost: list[Intervals],
    ) -> Iterator[Piece]:
        following, heard_s, astray = span.start, monotonic(), False
        self._client.assign(form.topic, span.partition, following)
        while following < span.stop:
            if not astray:
                piece = self._client.piece(form, following, span.stop, wanted)
                astray = piece.astray
                if piece.following > following:
                    following = piece.following
                    yield piece
                    heard_s = monotonic()  # a slow reader is no silence
                if piece.ended:
                    break
            silent = monotonic() - heard_s > outage_s
            if not (astray or silent):
                continue
            if (ends := self._client.ends(form.topic, span.partition)) is None:
                sleep(POLL_S)
            left = following if ends is None else _first_left(following, span, ends, silent)
            if left > following:
                lost.append(interval(following, left))
                following, heard_s = left, monotonic()
            elif silent:
                raise SpillwayError(
                    f"no records from Kafka at {self._servers} for {outage_s:g} s:"
                    f" topic '{form.topic}', partition {span.partition}, offset {following};"
                    f" are the brokers up?{self._client.complaint}"
                )
            if astray and ends is not None:
                self._client.assign(form.topic, span.partition, following)
                astray = False


def _python(config: Config) -> Client:
    from spillway.logs.kafka_python import PythonClient

    return PythonClient(config)


def _native(config: Config) -> Client:
    """The fallback, where there is no native reader that works."""
    from spillway.logs.kafka_native import NativeClient

    try:
        return NativeClient(config)
    except BrokenReaderError as error:
        say_once(f"no native reader ({error}): the query goes on without it")
        return _python(config)


def _first_left(following: int, span: Span, ends: tuple[int, int], silent: bool) -> int:
    """Where a log with these ends still has something of the span: later where it was cut at the
    start, nowhere where it ends before, as one does that was made anew. An end just here may be
    that of a replica that lags: it is waited for."""
    first, end = ends
    if following > end or (silent and following == end):
        return span.stop
    return min(max(following, first), span.stop)


_idle: dict[tuple[int, Config, bool], list[Reader]] = {}


@contextmanager
def borrowed_reader(config: Config, *, native: bool) -> Iterator[Reader]:
    """A reader of this process, connected already if it has been used before."""
    idle = _idle.setdefault((os.getpid(), config, native), [])
    reader = idle.pop() if idle else Reader(config, native=native)
    try:
        yield reader
    finally:
        reader.rest()
        idle.append(reader)

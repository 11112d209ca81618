"""A Kafka topic: positions are offsets, arrivals are record timestamps.

Offsets that compaction or transaction markers have taken are positions without a row. They count
as offered like any other; reading them yields nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaException

from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.gate.options import FAIL_ON_DATA_LOSS
from spillway.logs.avro_schemas import AVRO, Schemas
from spillway.logs.dead_letters import SAMPLES_PER_READ, DeadLetters, Found, Malformed
from spillway.logs.intervals import NOWHERE, Intervals, among, interval, runs, size, union
from spillway.logs.kafka_client import Piece, Reader, borrowed_reader, client_config
from spillway.logs.kafka_form import Form
from spillway.logs.kafka_history import WatermarkHistory
from spillway.logs.kafka_native import takes
from spillway.logs.kafka_parts import parts_of
from spillway.logs.kafka_record_times import RecordTimes
from spillway.logs.kafka_rows import RAW_COLUMNS, RAW_HEADERS
from spillway.logs.kafka_starts import WHEN, Starts
from spillway.logs.kafka_topics import KafkaTopics, TopicLog
from spillway.logs.kafka_watch import TopicWatch, admin_of, known_partitions
from spillway.logs.schema import ARRIVAL, conformed
from spillway.logs.topics import CHOICES, ORDER, choice
from spillway.options import Option, lowered, read
from spillway.ports import ArrivalCurve, Span

TOPIC_ID = "topic_id"
OPTIONS: tuple[Option, ...] = (
    *CHOICES,
    *WHEN,
    Option("kafka.bootstrap.servers", "text", "the brokers, host:port,host:port", required=True),
    Option(
        "kafka.NAME",
        "text",
        "passed to the client library (librdkafka's names): security, `kafka.isolation.level`, ...",
    ),
    Option(
        "decode",
        "choice",
        "what becomes of the value: columns, or the seven of Spark's own Kafka source",
        without="`json` with a schema, `raw` without",
        choices=("json", "avro", "raw"),
    ),
    *AVRO,
    Option(
        "headers", "flag", "adds `headers` to raw rows", default=False, also=("includeHeaders",)
    ),
    Option(
        "reader",
        "choice",
        "who reads: compiled code where it is installed, or Python; both give the same rows",
        default="native",
        choices=("native", "python"),
    ),
    Option(
        "group",
        "text",
        "sets this group's offsets so that lag tools see the query; never read back",
        also=("groupIdPrefix",),
    ),
    Option("outage_timeout", "duration", "how long silent brokers are waited for", default="60s"),
    Option(
        "mode",
        "choice",
        "malformed records, in Spark's words: left out and counted, or the end of the query",
        default="DROPMALFORMED",
        choices=("DROPMALFORMED", "FAILFAST"),
        any_case=True,
        refused={
            "PERMISSIVE": "a row of nulls would look like a tuple that was read; use DROPMALFORMED"
            " (left out, counted and sampled) or FAILFAST (ends the query)"
        },
    ),
    Option(
        "dead_letter",
        "text",
        "directory for malformed records, as in docs/gate.md",
        without="`dead_letters` beside the ledger, else in a private temporary folder",
    ),
    Option(TOPIC_ID, "text", "Kafka's id of the topic, pinned by the first start", set_by="run"),
    Option(
        "arrival_time",
        "choice",
        "when a row arrived: when the log had it, or the time that its record bears, which is that"
        " of its first arrival where a link brought it",
        default="log",
        choices=("log", "record"),
    ),
    ORDER,
)

_SEED_POINTS = 64
_OFFSETS = pa.schema([("offset", pa.int64())])


def require(options: Mapping[str, Any]) -> None:
    """Raise for options that exclude or need each other."""
    choice(options)
    Starts(options)


def require_there(options: Mapping[str, Any]) -> None:
    """Raise for a topic that the brokers do not have; their silence is no answer."""
    config = client_config(read(OPTIONS, options)["kafka.NAME"])
    admin, servers = admin_of(config), dict(config)["bootstrap.servers"]
    with suppress(KafkaException):
        for name in choice(options).names:
            known_partitions(admin, name, servers)


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "TopicLog":
    """One topic's log, or that of several as one."""
    wanted = choice(options)
    if wanted.only is not None:
        return KafkaLog(options, schema, wanted.only)
    given = read(OPTIONS, options)

    def one(topic: str, first: int, topic_id: str) -> KafkaLog:
        return KafkaLog({**options, TOPIC_ID: topic_id}, schema, topic, first)

    again = open_log, (dict(options), schema)
    return KafkaTopics(wanted, given[ORDER.name], client_config(given["kafka.NAME"]), one, again)


class KafkaLog:
    """`first` is the number of the topic's first partition, where several are read as one log."""

    def __init__(
        self, options: Mapping[str, str], schema: pa.Schema | None, topic: str, first: int = 0
    ) -> None:
        self._options = options
        self._wanted_schema = schema
        given = read((*OPTIONS, FAIL_ON_DATA_LOSS), options)
        self._topic, self._first = topic, first
        self._config = client_config(given["kafka.NAME"])
        self._decode: str = given["decode"] or ("raw" if schema is None else "json")
        self._headers: bool = given["headers"]
        self._wants_native: bool = given["reader"] == "native"
        self._group: str | None = given["group"]
        self._outage_s: float = given["outage_timeout"]
        self._dead_letters = DeadLetters(directory=given["dead_letter"])
        self._fail_fast: bool = given["mode"] == "FAILFAST"
        self._fail_on_loss: bool = given[FAIL_ON_DATA_LOSS.name]
        # Such a gate reads a range once for every mask: the others may yet find something in it.
        self._once = not any(lowered(options).get(name) for name in ("masks", "split"))
        self._topic_id: str | None = given[TOPIC_ID]
        self._by_record: bool = given["arrival_time"] == "record"
        self._record_times: dict[int, RecordTimes] = {}
        self._histories: dict[int, WatermarkHistory] = {}
        if self._decode != "raw" and schema is None:
            said = f"option 'decode' is '{self._decode}': give the schema of the values"
            raise SpillwayError(said)
        asked = given["avro_schemas"], given["registry"]
        self._avro = Schemas.given(*asked, self._outage_s) if self._decode == "avro" else None

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaLog, (dict(self._options), self._wanted_schema, self._topic, self._first)

    def columns(self) -> pa.Schema:
        return self._schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        extent = self._watch.extent(now_s)
        for span in extent:
            self._histories.setdefault(span.partition, WatermarkHistory()).record(span.stop, now_s)
        return extent

    def arrivals(self, span: Span) -> ArrivalCurve:
        if self._by_record:
            times = self._record_times.setdefault(span.partition, RecordTimes(self._times_at))
            return times.curve(span)
        history = self._histories.setdefault(span.partition, WatermarkHistory())
        if span.tuples and (history.first is None or span.start < history.first):
            history.seed(self._older_samples(span, history))
        return history.curve(span.start, span.stop)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        malformed, lost, reached = [NOWHERE], [NOWHERE], span.start
        samples: list[Malformed] = []
        try:
            for piece in self._pieces(self._form, span, wanted, lost):
                found = piece.malformed
                malformed.append(runs(np.array([m.position for m in found], dtype=np.int64)))
                samples += found[: SAMPLES_PER_READ - len(samples)]
                reached = piece.reached or reached
                if found and self._fail_fast:
                    raise self._refusal(span.partition, found[0])
                if piece.rows is not None and piece.rows.num_rows:
                    yield piece.rows
        finally:
            gone = union(lost)
            missing = gone if wanted is None else among(wanted, gone)
            self._dead_letters.record(
                self._first + span.partition,
                malformed=self._found(union(malformed), interval(span.start, reached)),
                lost=self._found(missing, gone),
                samples=samples,
            )
        if len(missing) and self._fail_on_loss:
            raise SpillwayError(
                f"topic '{self._topic}', partition {span.partition}, no longer has {size(missing)}"
                f" records of a planned batch, the first at {missing[0, 0]}: option"
                " 'failOnDataLoss' is true; set it to false to count them as lost and go on"
            )

    def identity(self) -> Mapping[str, str]:
        """The topic's id: another topic of the same name has other records at its offsets."""
        topic_id = self._watch.topic_id()
        return {} if topic_id is None else {TOPIC_ID: topic_id}

    def starts(self, extent: tuple[Span, ...]) -> Mapping[int, int] | None:
        """Where options say a time to start at."""
        return Starts(self._options).of(self._topic, extent, self._watch.position_at)

    def commit(self, stops: Mapping[int, int]) -> None:
        """Option `group` shows our progress to lag tools; it is never read back."""
        if self._group is not None:
            self._watch.commit(self._group, stops)

    def _pieces(
        self,
        form: Form,
        span: Span,
        wanted: npt.NDArray[np.int64] | None,
        lost: list[Intervals],
    ) -> Iterator[Piece]:
        """Pieces with the wanted records; long holes are never fetched."""
        with self._reader(form) as reader:
            for part in parts_of(span, wanted):
                yield from reader.fetch(form, part, wanted, self._outage_s, lost)

    def _times_at(self, span: Span, wanted: npt.NDArray[np.int64]) -> list[tuple[int, float]]:
        form = Form(topic=self._topic, schema=_OFFSETS, raw=True)
        rows = [p.rows for p in self._pieces(form, span, wanted, []) if p.rows is not None]
        return [
            (place, moment.timestamp())
            for batch in rows
            for place, moment in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]

    def _reader(self, form: Form) -> AbstractContextManager[Reader]:
        native = self._wants_native and takes(form)
        return borrowed_reader(self._config, native=native)

    def _found(self, positions: Intervals, judged: Intervals) -> Found:
        return Found(positions=positions, judged=judged if self._once else NOWHERE)

    def _refusal(self, partition: int, found: Malformed) -> SpillwayError:
        return SpillwayError(
            f"topic '{self._topic}', partition {partition}, offset {found.position} is malformed"
            f" ({found.reason}): option 'mode' is FAILFAST; correct the schema, or set it to"
            " DROPMALFORMED to leave such records out and count them"
        )

    def _older_samples(self, span: Span, history: WatermarkHistory) -> list[tuple[int, float]]:
        """Watermarks of the time before the first sample, from offsets by time."""
        last_s = history.first_time_s if history.first is not None else WallClock().now_s()
        first_s = min(self._first_time_s(span) or last_s, last_s)
        times_s = np.linspace(first_s, last_s, _SEED_POINTS)[1:-1].tolist()
        offsets = self._watch.first_at_or_after(span.partition, times_s)
        passed = [pair for pair in zip(offsets, times_s, strict=True) if pair[0] >= span.start]
        return [(span.start, first_s), *passed]

    def _first_time_s(self, span: Span) -> float | None:
        form = Form(topic=self._topic, schema=pa.schema([]), raw=True)
        with self._reader(form) as reader:
            piece = next(reader.fetch(form, span, None, self._outage_s, []), None)
        if piece is None or piece.rows is None:
            return None
        return float(piece.rows.column(ARRIVAL.name)[0].value) / 1e6

    @cached_property
    def _watch(self) -> TopicWatch:
        return TopicWatch(self._config, self._topic, self._outage_s, self._topic_id)

    @cached_property
    def _form(self) -> Form:
        raw = self._decode == "raw"
        return Form(topic=self._topic, schema=self._schema, raw=raw, avro=self._avro)

    @cached_property
    def _schema(self) -> pa.Schema:
        if self._decode == "raw":
            have = RAW_COLUMNS.append(RAW_HEADERS) if self._headers else RAW_COLUMNS
            return conformed(have, self._wanted_schema, "a raw Kafka record")
        assert self._wanted_schema is not None
        form = Form(topic=self._topic, schema=self._wanted_schema, raw=False, avro=self._avro)
        _ = form.decoder  # raises for columns that no such record has
        return self._wanted_schema

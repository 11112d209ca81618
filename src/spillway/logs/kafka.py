"""A Kafka topic: positions are offsets, arrivals are record timestamps.

Offsets that compaction or transaction markers have taken are positions without a row. They count
as offered like any other; reading them yields nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.gate.options import FAIL_ON_DATA_LOSS
from spillway.logs.dead_letters import NOWHERE, SAMPLES_PER_READ, DeadLetters, Malformed
from spillway.logs.json_rows import JsonDecoder
from spillway.logs.kafka_client import borrowed_reader, client_config
from spillway.logs.kafka_history import WatermarkHistory
from spillway.logs.kafka_rows import RAW_COLUMNS, RAW_HEADERS, raw_array
from spillway.logs.kafka_watch import TopicWatch
from spillway.logs.schema import ARRIVAL, conformed, with_arrival
from spillway.options import Option, read
from spillway.ports import ArrivalCurve, Span

OPTIONS: tuple[Option, ...] = (
    Option(
        "topic",
        "text",
        "the topic to read, all partitions, also those added later (found within 10 s)",
        required=True,
    ),
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
        choices=("json", "raw"),
    ),
    Option("headers", "flag", "adds `headers` to raw rows", default=False),
    Option(
        "group",
        "text",
        "sets this group's offsets so that lag tools see the query; never read back",
    ),
    Option("outage_timeout", "duration", "how long silent brokers are waited for", default="60s"),
    Option(
        "dead_letter",
        "text",
        "directory for malformed records, as in docs/gate.md",
        without="`dead_letters/GATE` beside the ledger, else in the temporary folder",
    ),
)

SEEK_TUPLES = 5_000  # a longer hole in `wanted` is not fetched: about where a seek gets cheaper
_SEED_POINTS = 64


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "KafkaLog":
    return KafkaLog(options, schema)


class KafkaLog:
    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None) -> None:
        self._options = options
        self._wanted_schema = schema
        given = read((*OPTIONS, FAIL_ON_DATA_LOSS), options)
        self._topic: str = given["topic"]
        self._config = client_config(given["kafka.NAME"])
        self._decode: str = given["decode"] or ("raw" if schema is None else "json")
        self._headers: bool = given["headers"]
        self._group: str | None = given["group"]
        self._outage_s: float = given["outage_timeout"]
        self._dead_letters = DeadLetters(directory=given["dead_letter"])
        self._fail_on_loss: bool = given[FAIL_ON_DATA_LOSS.name]
        self._histories: dict[int, WatermarkHistory] = {}
        if self._decode == "json" and schema is None:
            raise SpillwayError("option 'decode' is 'json': give the schema of the values")

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (dict(self._options), self._wanted_schema)

    def columns(self) -> pa.Schema:
        return self._schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        extent = self._watch.extent(now_s)
        for span in extent:
            self._histories.setdefault(span.partition, WatermarkHistory()).record(span.stop, now_s)
        return extent

    def arrivals(self, span: Span) -> ArrivalCurve:
        history = self._histories.setdefault(span.partition, WatermarkHistory())
        if span.tuples and (history.first is None or span.start < history.first):
            history.seed(self._older_samples(span, history))
        return history.curve(span.start, span.stop)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        malformed: list[int] = []
        samples: list[Malformed] = []
        lost: list[tuple[int, int]] = []
        try:
            for records in self._records(span, wanted, lost):
                batch, found = self._batch(records)
                malformed += [record.position for record in found]
                samples += found[: SAMPLES_PER_READ - len(samples)]
                if batch.num_rows:
                    yield batch
        finally:
            missing, bad = _within(lost, wanted), np.array(malformed, dtype=np.int64)
            self._dead_letters.record(span.partition, bad, samples, missing)
        if len(missing) and self._fail_on_loss:
            raise SpillwayError(
                f"topic '{self._topic}', partition {span.partition}, no longer has {len(missing)}"
                f" records of a planned batch, the first at {missing[0]}: option 'failOnDataLoss'"
                " is true; set it to false to count them as lost and go on"
            )

    def commit(self, stops: Mapping[int, int]) -> None:
        """Option `group` shows our progress to lag tools; it is never read back."""
        if self._group is not None:
            self._watch.commit(self._group, stops)

    def _records(
        self, span: Span, wanted: npt.NDArray[np.int64] | None, lost: list[tuple[int, int]]
    ) -> Iterator[Sequence[Any]]:
        """Records of the wanted offsets; long holes between them are never fetched."""
        with borrowed_reader(self._config) as reader:
            for part in _parts(span, wanted):
                for records in reader.fetch(part, self._topic, self._outage_s, lost):
                    yield records if wanted is None else _only(records, wanted)

    def _batch(self, records: Sequence[Any]) -> tuple[pa.RecordBatch, list[Malformed]]:
        malformed: list[Malformed] = []
        if self._decode == "raw":
            stamps = [record.timestamp() for record in records]
            arrays = [raw_array(field, records, stamps) for field in self._schema]
        else:
            values = [record.value() for record in records]
            decoded = self._decoder.decode(values)
            malformed = [
                Malformed(position=records[i].offset(), reason=reason, raw=values[i])
                for i, reason in decoded.bad.items()
            ]
            records = [records[i] for i in decoded.good] if malformed else records
            arrays = [column.combine_chunks() for column in decoded.rows.columns]
            stamps = [record.timestamp() for record in records]
        arrival_ms = np.array([stamp[1] for stamp in stamps], dtype=np.int64)
        arrays.append(pa.array(arrival_ms * 1000).view(ARRIVAL.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=with_arrival(self._schema))
        return batch, malformed

    def _older_samples(self, span: Span, history: WatermarkHistory) -> list[tuple[int, float]]:
        """Watermarks of the time before the first sample, from offsets by time."""
        last_s = history.first_time_s if history.first is not None else WallClock().now_s()
        first_s = min(self._first_time_s(span) or last_s, last_s)
        times_s = np.linspace(first_s, last_s, _SEED_POINTS)[1:-1].tolist()
        offsets = self._watch.first_at_or_after(span.partition, times_s)
        passed = [pair for pair in zip(offsets, times_s, strict=True) if pair[0] >= span.start]
        return [(span.start, first_s), *passed]

    def _first_time_s(self, span: Span) -> float | None:
        with borrowed_reader(self._config) as reader:
            records = next(reader.fetch(span, self._topic, self._outage_s, []), None)
            return float(records[0].timestamp()[1]) / 1000.0 if records else None

    @cached_property
    def _watch(self) -> TopicWatch:
        return TopicWatch(self._config, self._topic, self._outage_s)

    @cached_property
    def _decoder(self) -> JsonDecoder:
        return JsonDecoder(self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        if self._decode == "raw":
            have = RAW_COLUMNS.append(RAW_HEADERS) if self._headers else RAW_COLUMNS
            return conformed(have, self._wanted_schema, "a raw Kafka record")
        assert self._wanted_schema is not None
        JsonDecoder(self._wanted_schema)
        return self._wanted_schema


def _parts(span: Span, wanted: npt.NDArray[np.int64] | None) -> list[Span]:
    """What to fetch: all of the span, or what lies between the long holes of `wanted`."""
    if wanted is None or len(wanted) == 0:
        return [span] if wanted is None and span.tuples else []
    breaks = np.flatnonzero(np.diff(wanted) > SEEK_TUPLES)
    starts = wanted[np.concatenate(([0], breaks + 1))].tolist()
    stops = (wanted[np.concatenate((breaks, [len(wanted) - 1]))] + 1).tolist()
    return [
        Span(partition=span.partition, start=start, stop=stop)
        for start, stop in zip(starts, stops, strict=True)
    ]


def _within(
    ranges: list[tuple[int, int]], wanted: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """The wanted positions that lie in these ranges."""
    if wanted is None:
        return np.concatenate([NOWHERE, *(np.arange(start, stop) for start, stop in ranges)])
    cuts = [np.searchsorted(wanted, pair) for pair in ranges]
    return np.concatenate([NOWHERE, *(wanted[lower:upper] for lower, upper in cuts)])


def _only(records: Sequence[Any], wanted: npt.NDArray[np.int64]) -> Sequence[Any]:
    offsets = np.fromiter((record.offset() for record in records), dtype=np.int64)
    places = np.minimum(np.searchsorted(wanted, offsets), len(wanted) - 1)
    return [records[i] for i in np.flatnonzero(wanted[places] == offsets).tolist()]

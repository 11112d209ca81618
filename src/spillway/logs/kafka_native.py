"""The native reader: records become Arrow columns without a Python object each.

It makes rows only of what is beyond doubt. Every other record is judged by the reference decoder,
so which records are malformed, and why, never depends on which reader runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import confluent_kafka.cimpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spillway.logs.dead_letters import Malformed
from spillway.logs.intervals import Positions
from spillway.logs.kafka_client import ENDS_TIMEOUT_S, POLL_S, READER, BrokenReaderError, Piece
from spillway.logs.kafka_form import Form, avro_decoder
from spillway.logs.kafka_options import Config
from spillway.logs.kafka_rows import RAW_TYPES
from spillway.logs.schema import ARRIVAL, BATCH_ROWS, with_arrival

if TYPE_CHECKING:
    from spillway.logs.avro_plans import Plan

_PART = "spillway_native"
INTERFACE = 2  # of the program that this file was written for
_TYPES = {
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us")),
}

Doubtful = tuple[int, int, bytes | None]  # offset, arrival in milliseconds, value


def takes(form: Form) -> bool:
    """Whether there is a native reader that knows what becomes of these records."""
    if find_spec(_PART) is None:
        return False
    if form.raw:
        return "headers" not in form.schema.names
    return all(field.type in _TYPES for field in form.schema)


@cache
def native_part() -> Any:
    """The compiled module."""
    try:
        found = import_module(_PART)
    except Exception as error:  # whatever a damaged file leads to
        raise BrokenReaderError(str(error)) from error
    if getattr(found, "INTERFACE", None) != INTERFACE:
        raise BrokenReaderError("it is of another version: run make native")
    return found


class NativeClient:
    def __init__(self, config: Config) -> None:
        self.complaint = ""
        self._partition = 0
        part = native_part()
        given = [(name, str(value)) for name, value in {**dict(config), **READER}.items()]
        with _or_broken():
            self._consumer = part.Consumer(confluent_kafka.cimpl.__file__, given)

    def assign(self, topic: str, partition: int, offset: int) -> None:
        with _or_broken():
            self._consumer.assign(topic, partition, offset)
        self._partition = partition

    def unassign(self) -> None:
        with suppress(*_failures()):
            self._consumer.unassign()

    def piece(self, form: Form, following: int, stop: int, wanted: Positions | None) -> Piece:
        offsets = None if wanted is None else np.ascontiguousarray(wanted, dtype=np.int64)
        with _or_broken():
            found = self._consumer.piece(
                _native_form(form), (following, stop), offsets, BATCH_ROWS, round(POLL_S * 1000)
            )
            self.complaint = f" ({found.complaint})" if found.complaint else self.complaint
            rows, malformed = rows_of(form, self._partition, found) if found.reached else (None, [])
        return Piece(
            following=found.following,
            ended=found.ended,
            astray=found.astray,
            rows=rows,
            malformed=malformed,
            reached=found.reached,
        )

    def ends(self, topic: str, partition: int) -> tuple[int, int] | None:
        try:
            found: tuple[int, int] = self._consumer.ends(
                topic, partition, round(ENDS_TIMEOUT_S * 1000)
            )
        except RuntimeError as error:
            self.complaint = f" ({error})"
            return None
        return found if min(found) >= 0 else None


def rows_of(form: Form, partition: int, found: Any) -> tuple[pa.RecordBatch, list[Malformed]]:
    """The rows of a native piece, those that the reference had to judge among them."""
    *columns, offsets, arrival_ms, kinds = pa.record_batch(found).columns
    if form.raw:
        key, value = columns
        parts = {"key": key, "value": value, "offset": offsets}
        parts["timestamp"] = pc.multiply(arrival_ms, 1000).view(RAW_TYPES["timestamp"])
        parts["timestampType"] = pc.subtract(kinds, 1)  # Spark counts from -1 (none)
        places = {"topic": form.topic, "partition": partition}
        arrays = [
            _constant(places[field.name], field, len(offsets))
            if field.name in places
            else parts[field.name].cast(field.type)
            for field in form.schema
        ]
    else:
        arrays = [
            column if column.type == field.type else column.view(field.type)
            for column, field in zip(columns, form.schema, strict=True)
        ]
    arrays.append(pc.multiply(arrival_ms, 1000).view(ARRIVAL.type))
    rows = pa.RecordBatch.from_arrays(arrays, schema=with_arrival(form.schema))
    doubtful = found.doubtful
    return _judged(form, rows, offsets.to_numpy(), doubtful) if doubtful else (rows, [])


def _judged(
    form: Form, rows: pa.RecordBatch, offsets: Positions, doubtful: Sequence[Doubtful]
) -> tuple[pa.RecordBatch, list[Malformed]]:
    decoded = form.decoder.decode([value for _, _, value in doubtful])
    malformed = [
        Malformed(position=doubtful[i][0], reason=reason, raw=doubtful[i][2])
        for i, reason in decoded.bad.items()
    ]
    if not decoded.good:
        return rows, malformed
    good = [doubtful[i] for i in decoded.good]
    arrival_us = pa.array([ms * 1000 for _, ms, _ in good], pa.int64()).view(ARRIVAL.type)
    more = decoded.rows.append_column(ARRIVAL, arrival_us)
    places = np.concatenate((offsets, np.array([offset for offset, _, _ in good])))
    both = pa.concat_tables([pa.Table.from_batches([rows]), more])
    ordered = both.take(pa.array(np.argsort(places))).combine_chunks()
    return ordered.to_batches()[0], malformed


def _constant(value: object, field: pa.Field, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, RAW_TYPES[field.name]), rows).cast(field.type)


def _native_form(form: Form) -> Any:
    if form.avro is None:
        return _made_form(form, ())
    return _made_form(form, tuple(avro_decoder(form.schema, form.avro).plans))


@lru_cache(maxsize=32)
def _made_form(form: Form, numbers: tuple[int, ...]) -> Any:
    """`numbers`: of the Avro schemas that were met so far."""
    part = native_part()
    if form.raw:
        names = form.schema.names
        return part.Form.raw("key" in names, "value" in names)
    fields = [(field.name, str(field.type), not field.nullable) for field in form.schema]
    if form.avro is None:
        return part.Form.json(fields)
    plans = avro_decoder(form.schema, form.avro).plans
    return part.Form.avro(fields, {number: _parts(plans[number]) for number in numbers})


def _parts(plan: "Plan") -> list[tuple[Any, int | None, int, bool]]:
    return [(part.shape, part.place, part.scale, part.widens) for part in plan.parts]


@contextmanager
def _or_broken() -> Iterator[None]:
    """Whatever goes wrong in the native part is its own failure, never the query's."""
    try:
        yield
    except _failures() as error:
        raise BrokenReaderError(str(error)) from error


def _failures() -> tuple[type[BaseException], ...]:
    return Exception, native_part().Panic

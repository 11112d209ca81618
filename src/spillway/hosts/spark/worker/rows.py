"""The columns of the gate, and the rows of a slice in exactly those columns."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.gate.masks import COLUMN as QUERIES
from spillway.gate.masks import EVERY_QUERY, masks_of, possible_masks
from spillway.gate.options import GateOptions
from spillway.gate.rules import Stretch
from spillway.gate.sampling import AT_ONCE, positions_at_once
from spillway.gate.shedders.blocks import keep, read_block, shed_positions, spans
from spillway.hosts.spark.worker.slices import Slice
from spillway.logs import catalog
from spillway.ports import Log, Span

ARRIVAL, WEIGHT, HEARTBEAT, VERSION = "_arrival", "_weight", "_heartbeat", "_version"
PLACE, GAP_UNTIL, KEPT_FROM = "_place", "_gap_until", "_kept_from"
OURS = {
    ARRIVAL: TimestampType(),
    WEIGHT: DoubleType(),
    HEARTBEAT: BooleanType(),
    VERSION: LongType(),
    QUERIES: LongType(),
    PLACE: LongType(),
    GAP_UNTIL: TimestampType(),
    KEPT_FROM: TimestampType(),
}
_LOOK_BACK = 100  # positions in which a heartbeat looks for the last tuple


def spark_schema(options: Mapping[str, str], gate: GateOptions) -> StructType | str:
    """The log's own columns, or those of option `schema`, followed by the gate's."""
    ours = (
        [ARRIVAL] * gate.arrival
        + [WEIGHT] * gate.weight
        + [HEARTBEAT] * bool(gate.heartbeat_column)
    )
    ours += [PLACE, GAP_UNTIL] * gate.place + [KEPT_FROM] * gate.kept_from
    ours += [VERSION] * bool(gate.instances) + [QUERIES] * bool(gate.masks or gate.split)
    if "schema" in options:
        types = {name: kind.simpleString() for name, kind in OURS.items()}
        return ", ".join([options["schema"], *(f"{name} {types[name]}" for name in ours)])
    columns = own_columns(options)
    return StructType([*columns.fields, *(StructField(name, OURS[name]) for name in ours)])


def own_columns(options: Mapping[str, str]) -> StructType:
    """Of the log, where nobody asks for others."""
    log = catalog.open_log(catalog.pinned(options, WallClock().now_s()), None)
    return from_arrow_schema(log.columns())


def log_columns(schema: StructType) -> pa.Schema:
    """The part of the query's schema that the log has to deliver."""
    for field in schema:
        if field.name in OURS and field.dataType != OURS[field.name]:
            raise SpillwayError(
                f"column '{field.name}' is {field.dataType.simpleString()}: the gate gives it as"
                f" {OURS[field.name].simpleString()}"
            )
    theirs = StructType([field for field in schema if field.name not in OURS])
    columns: pa.Schema = to_arrow_schema(theirs, timezone="UTC")
    return columns


def asked_columns(schema: StructType, options: Mapping[str, str]) -> pa.Schema | None:
    """What the user asked the log for; None when it is just what the log has.

    Raises with the column's name when the log cannot give it.
    """
    pinned, asked = catalog.pinned(options, WallClock().now_s()), log_columns(schema)
    own = None if "schema" in options else own_columns(options)
    if own is not None and asked.equals(to_arrow_schema(own, timezone="UTC")):
        return None
    catalog.open_log(pinned, asked).columns()
    return asked


class Rows:
    """Reads slices in the exact Arrow schema that Spark checks for."""

    def __init__(self, schema: StructType, event_time: str | None = None) -> None:
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._event_time = event_time

    def of(self, part: Slice, log: Log) -> Iterator[pa.RecordBatch]:
        if part.rule.selection is not None:
            yield from self._selected(part, log)
            return
        for stretch in part.stretches:
            for span, wanted, mask in _chunks(stretch, part):
                places = self._places(part, span, wanted)
                for batch in log.read(span, wanted):
                    ours = {QUERIES: mask, PLACE: places[: batch.num_rows]}
                    yield self._shaped(batch, part, ours)
                    places = places[batch.num_rows :]

    def _selected(self, part: Slice, log: Log) -> Iterator[pa.RecordBatch]:
        """Block by block: a block is read whole, and what it holds decides."""
        for stretch in part.stretches:
            for span in spans(stretch):
                rows = read_block(log, span)
                if rows is None:
                    continue
                kept = keep(rows, span, part.rule)
                ours = {
                    QUERIES: EVERY_QUERY,
                    PLACE: self._places(part, span, np.flatnonzero(kept.mask) + span.start),
                    WEIGHT: part.weight * kept.weights,
                }
                if kept.kept_from_us is not None:
                    ours[KEPT_FROM] = kept.kept_from_us
                for batch in rows.filter(pa.array(kept.mask)).combine_chunks().to_batches():
                    yield self._shaped(batch, part, ours)

    def shed(self, part: Slice, log: Log) -> Iterator[pa.RecordBatch]:
        """What the rule dropped, read or unread."""
        for stretch in part.stretches:
            positions = shed_positions(stretch, part.rule, log)
            span = Span(partition=stretch.partition, start=stretch.start, stop=stretch.stop)
            for batch in log.read(span, positions) if len(positions) else ():
                yield self._shaped(batch, part, {WEIGHT: 1.0})

    def beat(self, part: Slice, log: Log) -> Iterator[pa.RecordBatch]:
        """One row without values whose event time has moved on as long as the stream was quiet.

        The last tuple's event time plus the time since its arrival; before the first tuple, the
        time of the heartbeat itself. Where the last tuples cannot be read, no row: a watermark
        that jumps to the wall clock would make later tuples late.
        """
        assert part.beats_us is not None
        known = [last for s in part.stretches if (last := self._last(s, log)) is not None]
        if not known and any(s.stop > 0 for s in part.stretches):
            return
        event_us = part.beats_us
        if known:
            arrival_us, last_event_us = max(known)
            event_us = last_event_us + max(0, part.beats_us - arrival_us)
        values: dict[str | None, Any] = {WEIGHT: 0.0, HEARTBEAT: True, QUERIES: EVERY_QUERY}
        values |= {VERSION: part.version, self._event_time: event_us, ARRIVAL: part.beats_us}
        arrays = [pa.array([values.get(field.name)], field.type) for field in self.schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _last(self, stretch: Stretch, log: Log) -> tuple[int, int] | None:
        """(arrival, event time) of a partition's last consumed tuple, in microseconds.

        The last position may hold none (a transaction's marker, a malformed record).
        """
        start = max(0, stretch.stop - _LOOK_BACK)
        span, last = Span(partition=stretch.partition, start=start, stop=stretch.stop), None
        with suppress(SpillwayError):  # the log has dropped them
            for batch in log.read(span, None) if stretch.stop > 0 else ():
                timed = batch.filter(batch.column(self._event_time).is_valid())
                if timed.num_rows:
                    last = _us(timed.column(ARRIVAL)), _us(timed.column(self._event_time))
        return last

    def _places(self, part: Slice, span: Span, wanted: Any) -> Any:
        """Where rows are missing in the log, later ones take their places: only spans are used."""
        if PLACE not in self.schema.names:
            return np.empty(0, dtype=np.int64)
        positions = np.arange(span.start, span.stop) if wanted is None else wanted
        return positions + part.places.get(span.partition, 0)

    def _shaped(
        self, batch: pa.RecordBatch, part: Slice, ours: Mapping[str, Any]
    ) -> pa.RecordBatch:
        given = {
            WEIGHT: part.weight,
            VERSION: part.version,
            HEARTBEAT: False,
            KEPT_FROM: 0,
            GAP_UNTIL: part.gap_until_us,
            **ours,
        }
        arrays = [self._column(batch, field, given) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field, ours: Mapping[str, Any]) -> Any:
        if field.name in ours and ours[field.name] is None:
            return pa.nulls(batch.num_rows, field.type)
        if field.name in ours:
            return pa.array(np.broadcast_to(ours[field.name], batch.num_rows), field.type)
        column = batch.column(field.name)
        return column if column.type == field.type else column.cast(field.type)


def _us(column: Any) -> int:
    """The last value, in microseconds."""
    return int(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())[-1].as_py())


def _chunks(stretch: Stretch, part: Slice) -> Iterator[tuple[Span, Any, int]]:
    """A long stretch piece by piece, so that its positions never fill the memory.

    Rows with different masks are read one mask after the other: a log may have fewer rows than
    positions, so a row's place in what comes back does not tell its position.
    """
    rule = part.rule
    length = AT_ONCE if rule.shares else positions_at_once(rule.sampling)  # masks are for all rows
    for lower in range(stretch.read, stretch.stop, length):
        upper = min(lower + length, stretch.stop)
        piece = Stretch(partition=stretch.partition, start=lower, read=lower, stop=upper)
        span = Span(partition=stretch.partition, start=lower, stop=upper)
        if rule.shares:
            for mask, wanted in _by_mask(piece, part):
                yield span, wanted, mask
        else:
            everything = rule.keep_ppm == 1_000_000
            yield span, None if everything else piece.kept_positions(rule), EVERY_QUERY


def _by_mask(piece: Stretch, part: Slice) -> Iterator[tuple[int, Any]]:
    """Positions to read, mask by mask."""
    rule = part.rule
    masks = masks_of(piece.read, piece.stop, rule.sampling, rule.shares, piece.partition)
    for mask in possible_masks(rule.sampling, rule.shares):
        wanted = piece.read + np.flatnonzero(masks == mask)
        if wanted.size:
            yield mask, wanted

"""Tuples into partial rows: one for each pane and key, on Arrow columns.

Where Arrow and Spark differ (NaN among least and greatest values, sums that overflow) every tuple
becomes a partial row of its own, and Spark does the rest as always.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from spillway.gate.combination import MATCHES, WEIGHT, Combination, Condition, Partial
from spillway.hosts.spark.worker.rows import HEARTBEAT, OURS

MOST_ROWS = 20_000  # partial rows held back for more of the same
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_PANE, _ROW = "pane", "row"
_FIRST = {"count": "count", "min": "min", "max": "max"}
_FIRST |= dict.fromkeys(("sum", "total", "weighted"), "sum")
_AGAIN = {**_FIRST, "count": "sum"}
_COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def tuples_schema(combination: Combination) -> StructType:
    """What the tuples look like: the log's columns, and those of the gate."""
    return StructType.fromJson(json.loads(combination.rows))


def partial_schema(combination: Combination, heartbeats: bool) -> StructType:
    """What Spark sees instead."""
    tuples = tuples_schema(combination)
    kept = [StructField(name, tuples[name].dataType) for name in _kept(combination)]
    partials = [StructField(p.name, _kind(p, tuples)) for p in combination.partials]
    matches = [StructField(MATCHES, BooleanType())] * bool(combination.conditions)
    beats = [StructField(HEARTBEAT, OURS[HEARTBEAT])] * heartbeats
    return StructType([*kept, *partials, *matches, *beats])


def _kept(combination: Combination) -> tuple[str, ...]:
    return (combination.time, *combination.keys)


def _kind(partial: Partial, tuples: StructType) -> Any:
    if partial.function == "count":
        return LongType()
    kind = tuples[partial.column or ""].dataType
    if partial.function in ("min", "max"):
        return kind
    is_whole = partial.function == "sum" and isinstance(kind, _WHOLE)
    return LongType() if is_whole else DoubleType()


class Combiner:
    """`schema`: of the partial rows, in Arrow's types."""

    def __init__(self, combination: Combination, schema: pa.Schema) -> None:
        self._combination, self._schema = combination, schema
        self._functions = [partial.function for partial in combination.partials]
        self._keys = [_PANE, *(f"key {n}" for n in range(len(combination.keys)))]
        self._keys += [MATCHES] * bool(combination.conditions)
        self._values = [f"value {n}" for n in range(len(self._functions))]
        self._time = schema.field(combination.time).type

    def partial_rows(self, tuples: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """At most a few `MOST_ROWS` are held, however many keys there are."""
        held: list[pa.Table] = []
        for batch in tuples:
            held.append(self._first(batch))
            if sum(table.num_rows for table in held) > MOST_ROWS:
                merged = self._merged(held)
                few = merged.num_rows <= MOST_ROWS // 2
                held = [merged] if few else []
                yield from () if few else self._shown(merged)
        if held:
            yield from self._shown(self._merged(held))

    def _first(self, batch: pa.RecordBatch) -> pa.Table:
        """A batch of tuples as partial rows. A tuple without an event time is in no window."""
        given, timed = self._combination, pa.Table.from_batches([batch])
        timed = timed.filter(timed.column(given.time).is_valid())
        if not given.conditions:
            return self._of(timed)
        meets = _met(given.conditions, timed)
        found = self._of(timed.filter(meets))
        rest = timed.column(given.time).filter(pc.invert(meets))
        return pa.concat_tables([found, *self._unmatched(rest, found)])

    def _of(self, tuples: pa.Table) -> pa.Table:
        given, at = self._combination, tuples.column(self._combination.time)
        columns = {_PANE: self._panes(at), "time": at.cast(self._time)}
        columns |= {f"key {n}": tuples.column(key) for n, key in enumerate(given.keys)}
        if given.conditions:
            columns[MATCHES] = pa.repeat(True, len(at))
        for name, partial in zip(self._values, given.partials, strict=True):
            columns[name] = at if partial.column is None else _value(partial, tuples)
        return self._grouped(pa.table(columns), _FIRST)

    def _panes(self, at: pa.ChunkedArray) -> pa.Array:
        given = self._combination
        us = at.cast(pa.timestamp("us", at.type.tz)).combine_chunks().view(pa.int64()).to_numpy()
        return pa.array((us - given.start_us) // given.pane_us)

    def _unmatched(self, at: pa.ChunkedArray, found: pa.Table) -> list[pa.Table]:
        """What does not meet the conditions still moves the watermark."""
        latest = pc.max(at)
        if not latest.is_valid:
            return []
        values = {"time": pa.array([latest.as_py()], self._time), MATCHES: pa.array([False])}
        values[_PANE] = self._panes(pa.chunked_array([values["time"]]))
        columns = [values.get(f.name, pa.nulls(1, f.type)) for f in found.schema]
        return [pa.Table.from_arrays(columns, schema=found.schema)]

    def _merged(self, held: Sequence[pa.Table]) -> pa.Table:
        return held[0] if len(held) == 1 else self._grouped(pa.concat_tables(held), _AGAIN)

    def _grouped(self, rows: pa.Table, functions: dict[str, str]) -> pa.Table:
        keys = list(self._keys)
        if not self._is_exact(rows, functions):
            rows = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
            keys.append(_ROW)
        steps = [
            (name, functions[f]) for name, f in zip(self._values, self._functions, strict=True)
        ]
        found = rows.group_by(keys, use_threads=False).aggregate([("time", "max"), *steps])
        return found.rename_columns([*keys, "time", *self._values]).select(
            [*self._keys, "time", *self._values]
        )

    def _is_exact(self, rows: pa.Table, functions: dict[str, str]) -> bool:
        """Whether Arrow's result is Spark's."""
        for name, function in zip(self._values, self._functions, strict=True):
            column = rows.column(name)
            if function in ("min", "max") and pa.types.is_floating(column.type):
                if pc.any(pc.is_nan(column)).as_py():
                    return False
            elif functions[function] == "sum" and pa.types.is_integer(column.type):
                ends = pc.min_max(column).as_py()
                most = max(abs(end or 0) for end in ends.values())
                if most * rows.num_rows >= 1 << 63:
                    return False
        return True

    def _shown(self, found: pa.Table) -> Iterator[pa.RecordBatch]:
        """In the columns that Spark checks for."""
        given = self._combination
        columns = {given.time: found.column("time")}
        columns |= {key: found.column(f"key {n}") for n, key in enumerate(given.keys)}
        for name, partial in zip(self._values, given.partials, strict=True):
            columns[partial.name] = found.column(name)
        if MATCHES in found.column_names:
            columns[MATCHES] = found.column(MATCHES)
        if HEARTBEAT in self._schema.names:
            columns[HEARTBEAT] = pa.repeat(False, found.num_rows)
        arrays = [columns[field.name].cast(field.type) for field in self._schema]
        shown = pa.Table.from_arrays(arrays, schema=self._schema)
        yield from shown.combine_chunks().to_batches()


def _value(partial: Partial, tuples: pa.Table) -> pa.ChunkedArray:
    column = tuples.column(partial.column)
    if partial.function not in ("total", "weighted"):
        return column
    floats = column.cast(pa.float64(), safe=False)
    return pc.multiply(floats, tuples.column(WEIGHT)) if partial.function == "weighted" else floats


def _met(conditions: Sequence[Condition], rows: pa.Table) -> pa.ChunkedArray:
    """Which tuples meet all of them; what is unknown is not met."""
    found = [_meets(condition, rows.column(condition.column)) for condition in conditions]
    return reduce(pc.and_, (pc.fill_null(meets, False) for meets in found))


def _meets(condition: Condition, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if condition.operator in ("is null", "is not null"):
        is_null = pc.is_null(column)
        return is_null if condition.operator == "is null" else pc.invert(is_null)
    if isinstance(condition.value, float) and not pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    kind = column.type if pa.types.is_floating(column.type) else None
    met = _COMPARE[condition.operator](column, pa.scalar(condition.value, kind))
    if condition.operator in (">", ">=") and pa.types.is_floating(column.type):
        return pc.or_(met, pc.is_nan(column))  # Spark: greater than every number
    return met

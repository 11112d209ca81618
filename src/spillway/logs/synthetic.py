"""Generated rows: every value and every arrival is a pure function of its position.

Nothing is stored and nothing is skipped over: a read makes exactly the rows that are wanted.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.logs.generated import (
    DEFAULT_COLUMNS,
    GeneratedColumn,
    Rows,
    columns_for,
    converted,
    parse_columns,
    random_words,
)
from spillway.logs.rates import RATE, known_workload, timetable_of_options
from spillway.logs.schema import BATCH_ROWS, conformed, with_arrival
from spillway.logs.timetable import START, Timetable
from spillway.options import Option, read
from spillway.ports import ArrivalCurve, Span

SHARED: tuple[Option, ...] = (  # with Nexmark
    Option(
        "partitions",
        "whole",
        "how many partitions share the stream, tuple by tuple",
        default=1,
        at_least=1,
        at_most=10_000,
    ),
    Option("tuples", "whole", "the stream ends after so many", without="never ends", at_least=0),
    Option("seed", "whole", "of values and workload", default=1, at_least=0),
    START,
)
OPTIONS: tuple[Option, ...] = (
    RATE,
    Option(
        "workload",
        "text",
        "one of the simulator's workloads, with mean `rate`",
        check=known_workload,
    ),
    Option("duration", "duration", "`workload` repeats after it", default="10m", at_most=86_400),
    Option(
        "columns",
        "text",
        "`name kind(arguments), ...`, as in docs/logs.md",
        without=f"as the schema's types suggest; without a schema `{DEFAULT_COLUMNS}`",
        check=parse_columns,
    ),
    *SHARED,
)
_NEVER = 2**62


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "SyntheticLog":
    return SyntheticLog(options, schema)


class SyntheticLog:
    declared = OPTIONS

    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None) -> None:
        self._options = options
        self._wanted_schema = schema
        self._given = read(self.declared, options)
        self._partitions: int = self._given["partitions"]
        tuples: int | None = self._given["tuples"]
        self._limit = _NEVER if tuples is None else tuples
        self._seed: int = self._given["seed"]

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (dict(self._options), self._wanted_schema)

    def columns(self) -> pa.Schema:
        return self._schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return tuple(
            Span(partition=p, start=0, stop=min(self._timetable.count(now_s, p), self._share(p)))
            for p in range(self._partitions)
        )

    def arrivals(self, span: Span) -> ArrivalCurve:
        return self._timetable.curve(span.start, span.stop, span.partition)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        total = span.tuples if wanted is None else len(wanted)
        for lower in range(0, total, BATCH_ROWS):
            upper = min(lower + BATCH_ROWS, total)
            if wanted is None:
                yield self._batch(np.arange(span.start + lower, span.start + upper), span.partition)
            else:
                yield self._batch(wanted[lower:upper], span.partition)

    def commit(self, stops: Mapping[int, int]) -> None:
        """Nobody keeps track of a generated stream."""

    def _share(self, partition: int) -> int:
        """The part of `tuples` that falls into a partition."""
        return (self._limit - partition + self._partitions - 1) // self._partitions

    def _batch(self, positions: npt.NDArray[np.int64], partition: int) -> pa.RecordBatch:
        arrival_us = self._timetable.arrival_us(positions, partition)
        whole = positions * self._partitions + partition if self._partitions > 1 else positions
        rows = Rows(positions=whole, arrival_us=arrival_us, words=random_words(whole, self._seed))
        arrays: list[Any] = [
            _typed(column.values(rows), field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        arrays.append(pa.array(arrival_us).view(pa.timestamp("us", tz="UTC")))
        return pa.RecordBatch.from_arrays(arrays, schema=self._batch_schema)

    @cached_property
    def _timetable(self) -> Timetable:
        return timetable_of_options(self._given)

    @cached_property
    def _columns(self) -> tuple[GeneratedColumn, ...]:
        if self._given["columns"] is not None or self._wanted_schema is None:
            made = parse_columns(self._given["columns"] or DEFAULT_COLUMNS)
        else:
            made = columns_for(self._wanted_schema)
        by_name = {column.name: column for column in made}
        have = pa.schema([(column.name, column.type) for column in made])
        delivered = conformed(have, self._wanted_schema, "the synthetic log")
        return tuple(by_name[name] for name in delivered.names)

    @cached_property
    def _schema(self) -> pa.Schema:
        if self._wanted_schema is not None:
            _ = self._columns
            return self._wanted_schema
        return pa.schema([(column.name, column.type) for column in self._columns])

    @cached_property
    def _batch_schema(self) -> pa.Schema:
        return with_arrival(self._schema)


def _typed(values: Any, kind: pa.DataType) -> pa.Array:
    """An Arrow array of the column's type; 64-bit values without a copy."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if array.type == kind:
        return array
    return array.view(kind) if pa.types.is_timestamp(kind) else converted(array, kind)

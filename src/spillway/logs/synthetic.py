"""Generated rows: every value and every arrival is a pure function of its position.

Nothing is stored and nothing is skipped over: a read makes exactly the rows that are wanted.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.logs import options as opt
from spillway.logs.generated import (
    DEFAULT_COLUMNS,
    GeneratedColumn,
    Rows,
    columns_for,
    parse_columns,
    random_words,
)
from spillway.logs.rates import timetable_of_options
from spillway.logs.schema import BATCH_ROWS, conformed, with_arrival
from spillway.logs.timetable import Timetable
from spillway.ports import ArrivalCurve, Span

OPTIONS: Mapping[str, str] = {
    "rate": "tuples per second, or a profile such as '0:1000,30:5000' (seconds:rate); default 1000",
    "workload": "a named workload with mean `rate` instead of a profile; repeats after `duration`",
    "duration": "length of one round of `workload`; default 10m",
    "columns": f"name kind(arguments), ...; default '{DEFAULT_COLUMNS}'",
    "partitions": "how many partitions share the rate; default 1",
    "tuples": "the stream ends after this many tuples; default: never",
    "seed": "of values and workload; default 1",
    "start": "arrival of the first tuple: epoch seconds or ISO 8601; default: the first start",
}


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "SyntheticLog":
    return SyntheticLog(options, schema)


class SyntheticLog:
    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None) -> None:
        self._options = options
        self._wanted_schema = schema
        self._partitions = opt.whole(options, "partitions", 1, least=1)
        self._limit = opt.whole(options, "tuples", 2**62)
        self._seed = opt.whole(options, "seed", 1)

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
        return timetable_of_options(self._options, self._seed, self._partitions)

    @cached_property
    def _columns(self) -> tuple[GeneratedColumn, ...]:
        if "columns" in self._options or self._wanted_schema is None:
            made = parse_columns(self._options.get("columns", DEFAULT_COLUMNS))
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
    return array.view(kind) if pa.types.is_timestamp(kind) else array.cast(kind)

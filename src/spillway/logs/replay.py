"""Replay of a file: every row arrives when its timestamp says, counted from the start time."""

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.logs.schema import ARRIVAL, BATCH_ROWS, conformed, with_arrival
from spillway.logs.tables import load_table
from spillway.logs.timetable import START, Timetable, known_start_us, timetable_of_arrivals
from spillway.options import Option, read
from spillway.ports import ArrivalCurve, Span

_UNITS_PER_S = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

OPTIONS: tuple[Option, ...] = (
    Option(
        "path", "text", "a .csv, .csv.gz, .parquet or .npy file, in order of time", required=True
    ),
    Option("time", "text", "the column of times; an .npy file has only that", default="timestamp"),
    Option("unit", "choice", "of times that are numbers", default="s", choices=tuple(_UNITS_PER_S)),
    Option("speed", "number", "how many times faster than recorded", default=1, above=0),
    Option("loop", "flag", "start again at the end", default=False),
    START,
)


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "ReplayLog":
    return ReplayLog(options, schema)


class ReplayLog:
    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None) -> None:
        self._options = options
        self._wanted_schema = schema
        given = read(OPTIONS, options)
        self._path = Path(given["path"])
        self._time: str = given["time"]
        self._unit: str = given["unit"]
        self._speed: float = given["speed"]
        self._loop: bool = given["loop"]
        self._start_us: int | None = given["start"]

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (dict(self._options), self._wanted_schema)

    def columns(self) -> pa.Schema:
        return self._schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return (Span(partition=0, start=0, stop=self._timetable.count(now_s)),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        return self._timetable.curve(span.start, span.stop)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        total = span.tuples if wanted is None else len(wanted)
        for lower in range(0, total, BATCH_ROWS):
            upper = min(lower + BATCH_ROWS, total)
            if wanted is None:
                yield self._batch(np.arange(span.start + lower, span.start + upper))
            else:
                yield self._batch(wanted[lower:upper])

    def commit(self, stops: Mapping[int, int]) -> None:
        """A file keeps no track of its readers."""

    def _batch(self, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
        table = self._table
        if not self._loop and len(positions) and positions[-1] >= table.num_rows:
            raise SpillwayError(
                f"{self._path} has {table.num_rows} rows: row {positions[-1]} was asked for; the"
                " file has changed, so restore it, or start with a new checkpoint"
            )
        rows = positions % table.num_rows
        taken = table.select(self._schema.names).take(pa.array(rows)).combine_chunks()
        arrays = [_one_chunk(taken.column(field.name), field.type) for field in self._schema]
        arrays.append(pa.array(self._timetable.arrival_us(positions)).view(ARRIVAL.type))
        return pa.RecordBatch.from_arrays(arrays, schema=with_arrival(self._schema))

    @property
    def _table(self) -> pa.Table:
        return load_table(str(self._path), _version(self._path), self._time, self._wanted_schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        return conformed(self._table.schema, self._wanted_schema, str(self._path))

    @cached_property
    def _timetable(self) -> Timetable:
        file = str(self._path), _version(self._path), self._time, self._unit
        return _timetable(*file, self._speed, self._loop, known_start_us(self._start_us))


def _version(path: Path) -> tuple[int, int]:
    """Changes when the file does: the cache never serves an old one."""
    try:
        found = path.stat()
    except OSError:
        raise SpillwayError(f"file {path} does not exist: give option 'path'") from None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _timetable(
    path: str,
    version: tuple[int, int],
    time: str,
    unit: str,
    speed: float,
    loop: bool,
    start_us: int,
) -> Timetable:
    """A loop starts again one mean gap after the last row."""
    column = load_table(path, version, time, None).column(time)
    arrivals_s = _passed_s(column, unit, f"column '{time}' of {path}") / speed
    gap_s = arrivals_s[-1] / max(1, len(arrivals_s) - 1)
    period_s = arrivals_s[-1] + max(gap_s, 1e-6) if loop else None
    return timetable_of_arrivals(start_us, arrivals_s, period_s)


def _passed_s(column: pa.ChunkedArray, unit: str, what: str) -> npt.NDArray[np.float64]:
    """Seconds since the first row; times must never decrease."""
    if pa.types.is_timestamp(column.type):
        unit = column.type.unit
        column = column.cast(pa.int64())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise SpillwayError(f"{what} is {column.type}: it must hold numbers or timestamps")
    if column.null_count:
        raise SpillwayError(f"{what} has {column.null_count} empty times: every row needs one")
    values = column.to_numpy()
    signed = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    steps = np.diff(signed)
    broken = np.flatnonzero(~(steps >= 0))
    if len(broken):
        row = int(broken[0]) + 1
        raise SpillwayError(
            f"{what} decreases at row {row}, from {values[row - 1]} to {values[row]}:"
            " sort the file by time"
        )
    return np.concatenate(([0.0], np.cumsum(steps))) / _UNITS_PER_S[unit]


def _one_chunk(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    chunks = column.cast(kind).chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)

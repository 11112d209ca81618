"""A directory that another query's Parquet file sink writes: a derived stream.

Positions count rows in commit order. Rows with an `_arrival` column keep it, so that delay is
measured from the first arrival through all queries; others arrive when their file was written.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SpillwayError
from spillway.logs.schema import ARRIVAL, BATCH_ROWS, conformed, with_arrival
from spillway.logs.sink_index import CommittedFile, SinkIndex, sink_index
from spillway.options import Option, read
from spillway.ports import ArrivalCurve, Span

OPTIONS: tuple[Option, ...] = (
    Option(
        "path",
        "text",
        "the directory that a Parquet file sink writes (append mode, no partitionBy)",
        required=True,
    ),
)

_POINTS_PER_FILE = 256
_Times = npt.NDArray[np.float64]


def open_log(options: Mapping[str, str], schema: pa.Schema | None = None) -> "FilesLog":
    return FilesLog(options, schema)


class FilesLog:
    def __init__(self, options: Mapping[str, str], schema: pa.Schema | None) -> None:
        self._options = options
        self._wanted_schema = schema
        self._path: str = read(OPTIONS, options)["path"]

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (dict(self._options), self._wanted_schema)

    def columns(self) -> pa.Schema:
        return self._schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        self._index.refresh()
        return (Span(partition=0, start=self._index.first, stop=self._index.rows),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        positions, times_s = [span.start], [0.0]
        for file in self._index.files(span.start, span.stop):
            local, local_s = _file_curve(file)
            first, last = max(span.start, file.first), min(span.stop, file.stop)
            reached = local + file.first
            inside = reached[(reached > first + 1) & (reached < last)]
            points = np.unique(np.concatenate(([first + 1], inside, [last])))
            positions += points.tolist()
            times_s += np.interp(points - file.first, local, local_s).tolist()
        times_s[0] = times_s[min(1, len(times_s) - 1)]
        return ArrivalCurve(positions=np.array(positions), times_s=np.array(times_s))

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[pa.RecordBatch]:
        for file in self._index.files(span.start, span.stop):
            first, last = max(span.start, file.first), min(span.stop, file.stop)
            rows = None
            if wanted is not None:
                lower, upper = np.searchsorted(wanted, (first, last))
                rows = wanted[lower:upper] - file.first
            for table in _row_groups(file, first - file.first, last - file.first, rows):
                yield from self._batches(table, file)

    def commit(self, stops: Mapping[int, int]) -> None:
        """A directory keeps no track of its readers."""

    def _batches(self, table: pa.Table, file: CommittedFile) -> Iterator[pa.RecordBatch]:
        arrival = _arrival_of(table, file)
        chosen = conformed(table.schema, self._schema, file.path)
        rows = table.select(chosen.names).cast(chosen).append_column(ARRIVAL, arrival)
        rows = rows.cast(with_arrival(self._schema)).combine_chunks()
        yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    @cached_property
    def _index(self) -> SinkIndex:
        return sink_index(self._path)

    @cached_property
    def _schema(self) -> pa.Schema:
        last = self._index.last_file
        if last is None or not Path(last.path).exists():  # more have been committed since
            self._index.refresh()
            last = self._index.last_file
        if last is not None:
            found = pq.read_schema(last.path)
            return conformed(found, self._wanted_schema, self._path)
        if self._wanted_schema is None:
            raise SpillwayError(
                f"{self._path} has no committed rows yet, so its columns are not known:"
                " give a schema, or start the query that writes it first"
            )
        return self._wanted_schema


def _row_groups(
    file: CommittedFile, first: int, last: int, rows: npt.NDArray[np.int64] | None
) -> Iterator[pa.Table]:
    """Rows [first, last) of a file, or those listed, touching only the row groups they are in."""
    opened = _opened(file.path)
    start = 0
    for group in range(opened.num_row_groups):
        stop = start + opened.metadata.row_group(group).num_rows
        low, high = max(first, start), min(last, stop)
        if rows is None and low < high:
            yield opened.read_row_group(group, use_threads=False).slice(low - start, high - low)
        elif rows is not None:
            lower, upper = np.searchsorted(rows, (low, high)) if low < high else (0, 0)
            if lower < upper:
                taken = pa.array(rows[lower:upper] - start)
                yield opened.read_row_group(group, use_threads=False).take(taken)
        start = stop


@lru_cache(maxsize=32)
def _opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except FileNotFoundError:
        raise SpillwayError(
            f"{path} is committed but has gone: restore it, or start with a new checkpoint"
        ) from None
    except pa.ArrowInvalid as error:
        raise SpillwayError(
            f"{path} is committed but is no Parquet file ({str(error).splitlines()[0]}): restore"
            " it, or start with a new checkpoint"
        ) from None


@lru_cache(maxsize=4096)
def _file_curve(file: CommittedFile) -> tuple[npt.NDArray[np.int64], _Times]:
    """Local positions and the times of the rows just below them."""
    points = np.unique(np.linspace(1, file.rows, _POINTS_PER_FILE).astype(np.int64))
    opened = _opened(file.path)
    if ARRIVAL.name not in opened.schema_arrow.names:
        return points, np.full(len(points), file.written_s)
    table = opened.read(columns=[ARRIVAL.name], use_threads=False)
    times_us = _arrival_of(table, file).cast(pa.int64()).to_numpy()
    return points, times_us[points - 1] / 1e6


def _arrival_of(table: pa.Table, file: CommittedFile) -> pa.ChunkedArray:
    written = pa.scalar(round(file.written_s * 1e6), pa.int64()).cast(ARRIVAL.type)
    if ARRIVAL.name not in table.column_names:
        return pa.chunked_array([pa.repeat(written, table.num_rows)])
    return table.column(ARRIVAL.name).cast(ARRIVAL.type).fill_null(written)

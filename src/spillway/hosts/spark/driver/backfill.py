"""What was shed is processed later, from the log: the windows that lost something from all their
rows, or the shed rows themselves. Nothing is added up: the answer is the one without shedding.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from spillway.errors import SpillwayError, unknown_name
from spillway.estimates.flow import answer_sql, gate_options
from spillway.flow.derived import ARRIVAL, expanded
from spillway.flow.flow import Flow
from spillway.flow.reading import columns_read
from spillway.flow.repair import Repair, repair_of
from spillway.flow.stream_log import log_of
from spillway.flow.time_windows import TimeWindow
from spillway.gate.ledger import lives
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule, Stretch
from spillway.gate.shedders.blocks import DATA_BLOCK, shed_positions
from spillway.hosts.spark.driver.consumed import Consumed, Lost, times_s
from spillway.hosts.spark.files import Folder, offsets_of
from spillway.hosts.spark.worker.rows import Rows, asked_columns, spark_schema
from spillway.hosts.spark.worker.slices import Slice
from spillway.logs import catalog
from spillway.model import parse_duration_s
from spillway.ports import Log, Span
from spillway.sinks import catalog as sinks

_ROWS_A_TASK = 64 * DATA_BLOCK


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a backfill is going to do."""

    query: str
    repair: Repair
    shed_tuples: int  # that arrived in this time, and are still in the log
    gone_tuples: int  # of all that the query shed: no longer in the log
    windows_us: tuple[int, ...]  # beginnings of those that are computed again
    open_windows: int  # lost something, and the query is still to close them
    gone_windows: int  # lost something, and some of their rows are no longer in the log

    @property
    def has_work(self) -> bool:
        return bool(self.windows_us if self.repair.window else self.shed_tuples)


class Backfill:
    """Of one query of a flow, by what its folder holds. `moment`: now, epoch seconds."""

    def __init__(self, flow: Flow, folder: Folder, query: str, moment_s: float) -> None:
        self._flow = expanded(flow, folder.root / "streams")
        if query not in self._flow.queries:
            raise unknown_name("query", query, self._flow.queries)
        self._folder, self._query, self._moment_s = folder, query, moment_s
        self.repair = repair_of(query, self._flow)
        self._consumed = {name: self._read(name) for name in self.repair.streams}

    def plan(self, since_s: float, until_s: float) -> Plan:
        """For what was shed of the tuples that arrived from `since_s` up to before `until_s`."""
        shed, found = 0, np.empty(0, dtype=np.int64)
        for name, consumed in self._consumed.items():
            column = self.repair.columns.get(name, ARRIVAL)
            for rows in _shed_rows(consumed, since_s, until_s):
                shed += rows.num_rows
                found = np.union1d(found, _windows_of(times_s(rows, column), self.repair.window))
        kept, opened, gone = self._sorted_out(found)
        return Plan(
            query=self._query,
            repair=self.repair,
            shed_tuples=shed,
            gone_tuples=sum(c.gone_tuples() for c in self._consumed.values()),
            windows_us=tuple(kept.tolist()),
            open_windows=opened,
            gone_windows=gone,
        )

    def result(self, plan: Plan, spark: SparkSession, since_s: float, until_s: float) -> DataFrame:
        """What takes the place of those windows, or is to be added."""
        window = self.repair.window
        for name, consumed in self._consumed.items():
            schema, options = self._columns(name, consumed)
            if window is None:
                parts = list(_portions(consumed.lost(since_s, until_s)))
                rows = _frame(spark, _Reading(parts, options, schema, shed=True))
                kept = rows.where(_between(F.col(ARRIVAL), [(since_s * 1e6, until_s * 1e6)]))
            else:
                column = self.repair.columns[name]
                spans_us = _together(plan.windows_us, window.length_us)
                parts = list(_whole(consumed, column, spans_us))
                rows = _frame(spark, _Reading(parts, options, schema, shed=False))
                kept = rows.where(_between(F.col(column), spans_us))
            kept.createOrReplaceTempView(name)
        found = spark.sql(answer_sql(self._query, self._flow.queries[self._query], self._flow))
        if window is None or self.repair.period is None:
            return found
        begins = F.unix_micros(F.col(f"`{self.repair.period}`.start"))
        return found.where(begins.isin([int(us) for us in plan.windows_us]))

    def write(self, plan: Plan, found: DataFrame, since_s: float, until_s: float) -> str:
        """Into the sink, where that can replace what it has; says where it went."""
        sink = self._flow.queries[self._query].sink
        repair = sinks.repair_of(self._query, sink)
        if repair is not None:
            repair(
                found,
                self.repair.period,
                [datetime.fromtimestamp(us / 1e6, UTC) for us in plan.windows_us],
            )
            return f"sink '{sink.type}'"
        path = corrections(self._folder.root, self._query, since_s, until_s)
        found.write.mode("overwrite").parquet(str(path))
        return str(path)

    def _read(self, name: str) -> Consumed:
        path = self._folder.ledger(self._query, name)
        checkpoint = self._folder.checkpoint(self._query)
        known = offsets_of(path, checkpoint if checkpoint.is_dir() else None)
        by_life = lives(known)
        if not by_life:
            raise SpillwayError(f"'{path}' holds no finished batch yet: there is nothing to do")
        offsets = by_life[max(by_life, key=lambda life: life[1])]  # the one of the checkpoint
        log = log_of(self._flow, f"{self._query}/{name}", offsets[-1].pinned)
        lateness_s = parse_duration_s(self._flow.streams[name].watermark)
        return Consumed(offsets, log, self._moment_s, lateness_s)

    def _sorted_out(self, found: Any) -> tuple[Any, int, int]:
        """Of these windows: which can be computed, how many are open, how many have lost rows."""
        window = self.repair.window
        if window is None:
            return found, 0, 0
        pairs = [(c, self.repair.columns[name]) for name, c in self._consumed.items()]
        whole_us = 1e6 * max(consumed.whole_from_s(column) for consumed, column in pairs)
        done_us = 1e6 * min(consumed.done_until_s(column) for consumed, column in pairs)
        is_open = found + window.length_us > done_us
        is_gone = ~is_open & (found < whole_us)
        return found[~is_open & ~is_gone], int(is_open.sum()), int(is_gone.sum())

    def _columns(self, name: str, consumed: Consumed) -> tuple[StructType, dict[str, str]]:
        """As the gate gives them, without its heartbeats."""
        columns = columns_read(self._flow, self._query, name)
        given = gate_options(self._flow, self._query, name)
        gate = replace(GateOptions.parse(given), heartbeat_column=None)
        if columns is not None:
            given["schema"] = ", ".join(f"`{c}` {t}" for c, t in columns.items())
        options = catalog.without_consequences({**given, **consumed.pinned})
        given_schema = spark_schema(options, gate)
        schema = StructType.fromDDL(given_schema) if isinstance(given_schema, str) else given_schema
        assert isinstance(schema, StructType)
        return schema, options


def _shed_rows(consumed: Consumed, since_s: float, until_s: float) -> Iterator[pa.RecordBatch]:
    """Those that arrived in this time."""
    for lost in _portions(consumed.lost(since_s, until_s)):
        positions = shed_positions(lost.stretch, lost.rule, consumed.log)
        stretch = lost.stretch
        span = Span(partition=stretch.partition, start=stretch.start, stop=stretch.stop)
        for rows in consumed.log.read(span, positions) if len(positions) else ():
            arrived_s = times_s(rows, ARRIVAL)
            yield rows.filter(pa.array((since_s <= arrived_s) & (arrived_s < until_s)))


def _windows_of(at_s: Any, window: TimeWindow | None) -> Any:
    """Where the windows begin that hold one of these times."""
    if window is None:
        return np.empty(0, dtype=np.int64)
    at_us = np.round(at_s * 1e6).astype(np.int64)
    last = (at_us - window.start_us) // window.slide_us * window.slide_us + window.start_us
    back = np.arange(0, window.length_us, window.slide_us)
    begins = (np.unique(last)[:, None] - back[None, :]).ravel()
    exact = np.unique(begins)
    if window.tumbling:
        return exact
    holds = np.searchsorted(np.sort(at_us), exact + window.length_us) > np.searchsorted(
        np.sort(at_us), exact
    )
    return exact[holds]


def _together(begins_us: Sequence[int], length_us: int) -> list[tuple[float, float]]:
    """Windows that touch each other as one span."""
    spans: list[tuple[float, float]] = []
    for begin in begins_us:
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], begin + length_us)
        else:
            spans.append((begin, begin + length_us))
    return spans


def _between(column: Column, spans_us: Sequence[tuple[float, float]]) -> Column:
    at, found = F.unix_micros(column), F.lit(False)
    for since_us, until_us in spans_us:
        found = found | ((at >= F.lit(since_us)) & (at < F.lit(until_us)))
    return found


def _whole(
    consumed: Consumed, column: str, spans_us: Sequence[tuple[float, float]]
) -> Iterator[Lost]:
    """Everything that may lie in these spans, each position once."""
    done: dict[int, int] = {}
    for since_us, until_us in spans_us:
        for span in consumed.between(column, since_us / 1e6, until_us / 1e6):
            start = max(span.start, done.get(span.partition, 0))
            if start < span.stop:
                done[span.partition] = span.stop
                stretch = Stretch(partition=span.partition, start=start, read=start, stop=span.stop)
                whole = Lost(stretch=stretch, rule=Rule(), pinned=consumed.pinned)
                yield from _portions(iter([whole]))


def _portions(found: Iterator[Lost]) -> Iterator[Lost]:
    """Of a length that a task takes, cut where blocks begin."""
    for lost in found:
        stretch, start = lost.stretch, lost.stretch.start
        while start < stretch.stop:
            stop = min(stretch.stop, (start // _ROWS_A_TASK + 1) * _ROWS_A_TASK)
            read = min(stop, max(start, stretch.read))
            yield replace(lost, stretch=replace(stretch, start=start, read=read, stop=stop))
            start = stop


@dataclass(frozen=True)
class _Reading:
    """Travels to the workers; a task is named by the number of its part."""

    parts: Sequence[Lost]
    options: Mapping[str, str]
    schema: StructType
    shed: bool

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, asked = Rows(self.schema), asked_columns(self.schema, dict(self.options))
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                lost = self.parts[number]
                part = Slice((lost.stretch,), lost.rule, pinned=lost.pinned)
                log: Log = catalog.open_log({**self.options, **lost.pinned}, asked)
                yield from rows.shed(part, log) if self.shed else rows.of(part, log)


def _frame(spark: SparkSession, reading: _Reading) -> DataFrame:
    count = len(reading.parts)
    numbers = spark.range(0, count, 1, max(1, count))
    return numbers.mapInArrow(reading, reading.schema)


def corrections(folder: Path, query: str, since_s: float, until_s: float) -> Path:
    """Where results go whose sink cannot replace what it has: a run again replaces its own."""
    span = "-".join(_named(moment_s) for moment_s in (since_s, until_s))
    return folder / "backfill" / query / span


def _named(moment_s: float) -> str:
    return "all" if np.isinf(moment_s) else f"{moment_s:.0f}"

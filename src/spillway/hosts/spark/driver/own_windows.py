"""Which results of a query are a checkpoint's own, while the query moves to another one.

Two checkpoints of a query read the same stream for a while. Every result carries the start of its
window in a column that no sink sees; the offset of the batch says which windows are its own, so
that a batch that is run again is cut where it was cut first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.sql import parse, streams_of, text_of, with_column
from spillway.flow.time_windows import TimeWindow, is_time_window, time_window
from spillway.handover import FOREVER
from spillway.hosts.spark.files import logged_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START = "_window_start"


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """A query whose results can be told apart by their windows."""

    sql: str  # with the column START
    window: TimeWindow
    streams: tuple[str, ...]
    columns: tuple[str, ...]  # of its results


def windowed(name: str, sql: str, flow: Flow) -> Windowed:
    """Raises with the reason why results cannot be told apart by their windows. The text stays as
    it was written, but for one more column."""
    tree = parse(name, sql)
    streams = streams_of(name, sql, flow)
    if len(streams) > 1:
        raise cannot_move(
            name,
            f"it reads several streams ({', '.join(streams)}) and keeps state: a cut has to lie"
            " behind all of their rows, and Spark says how far event time is of one of them only",
        )
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) > 1:
        raise cannot_move(
            name, "it is not one SELECT: only a single aggregate over windows can be cut"
        )
    if any(tree.args.get(part) for part in ("joins", "distinct", "limit", "order")):
        raise cannot_move(name, "DISTINCT, LIMIT, ORDER BY and joins reach over windows")
    written, window = _grouped_by(name, tree)
    if window.column != flow.streams[streams[0]].event_time:
        raise cannot_move(name, f"its windows are over '{window.column}', which has no watermark")
    return Windowed(
        sql=with_column(sql, f"{text_of(written)}.start AS {START}"),
        window=window,
        streams=streams,
        columns=tuple(tree.named_selects),
    )


def own_results(checkpoint: Path, rows: DataFrame, batch_id: int) -> DataFrame:
    """What of a batch is this checkpoint's own, by the offset of the batch.

    Both bounds at once could contradict each other: Spark would see that nothing is wanted, compute
    nothing, and miss the state's commit.
    """
    from pyspark.sql import functions as F  # noqa: N812

    logged = logged_batch(checkpoint, batch_id)
    for offset in () if logged is None else logged.gates():
        start_us = F.unix_micros(F.col(START).cast("timestamp"))
        if offset.owned is not None and offset.owned.from_us > 0:
            rows = rows.where(start_us >= offset.owned.from_us)
        if offset.owned is not None and offset.owned.until_us < FOREVER:
            rows = rows.where(start_us < offset.owned.until_us)
    return rows.drop(START)


def _grouped_by(name: str, tree: exp.Select) -> tuple[exp.Expr, TimeWindow]:
    group = tree.args.get("group")
    aliases = {e.alias: e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    for key in group.expressions if group else ():
        written = aliases.get(key.name, key) if isinstance(key, exp.Column) else key
        if is_time_window(written) and (window := time_window(written)) is not None:
            return written, window
    raise cannot_move(
        name, "it has no GROUP BY window(column, ...) with literal durations: its state has no end"
    )


def cannot_move(name: str, why: str) -> SpillwayError:
    return SpillwayError(f"query '{name}' cannot move while it runs: {why}")

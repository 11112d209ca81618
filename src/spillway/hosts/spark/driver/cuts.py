"""How a query that moves or changes while it runs is cut in two: where its results go on from.

A query without state is cut by the positions of its streams: what lies before is the origin's. A
successor reads what lies before it as well, silently, so that it runs at full speed when its own
part begins. A query over windows is cut by event time (`own_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.estimates.flow import answer_sql
from spillway.flow.flow import Flow, Query
from spillway.flow.sql import parse, streams_of
from spillway.handover import NOTHING_YET
from spillway.hosts.spark.driver.own_windows import Windowed, cannot_move, own_results, windowed
from spillway.hosts.spark.files import logged_batch
from spillway.sinks.catalog import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SINKS: Mapping[str, str] = {
    "parquet": "its folder takes the files of one checkpoint only",
    "memory": "its table is in the memory of one node",
    "console": "it prints on one node",
}
_OF_SEVERAL_ROWS: tuple[type[Any], ...] = (
    *(exp.Join, exp.Group, exp.AggFunc, exp.Window, exp.Distinct, exp.Order, exp.Limit),
    *(exp.Exists, exp.Intersect, exp.Except, exp.Pivot),
)


@dataclass(frozen=True, kw_only=True)
class Rowwise:
    """A query each row of whose result comes of one row of its streams."""

    sql: str
    streams: tuple[str, ...]
    columns: tuple[str, ...]


Cut = Rowwise | Windowed


def cut_of(name: str, query: Query, flow: Flow) -> Cut:
    """Raises with the reason why a query cannot be cut while it runs."""
    _require_sink(name, query)
    if query.sql is None:
        kind = "a template's instances share one plan" if query.template else "it is Python"
        raise cannot_move(name, kind)
    if query.mode == "complete":
        raise cannot_move(name, "mode complete puts all results out again and again")
    if query.estimate:
        raise cannot_move(name, "an estimate aggregates twice")
    sql = answer_sql(name, query, flow)
    tree = parse(name, sql)
    if _is_rowwise(tree):
        if query.mode != "append":
            raise cannot_move(name, "its results are rows: write mode: append")
        streams = streams_of(name, query.sql, flow)
        return Rowwise(sql=sql, streams=streams, columns=tuple(tree.named_selects))
    return windowed(name, sql, flow)


def told_apart(name: str, query: Query, flow: Flow) -> Cut | None:
    """None where its results cannot be told apart."""
    with suppress(SpillwayError):
        return cut_of(name, query, flow)
    return None


def part_of(cut: Cut | None, query: Query, checkpoint: Path) -> Part | None:
    """What of its batches a checkpoint puts out; None: all, or nobody keeps it."""
    if cut is None or query.sink.type == "noop":
        return None
    return partial(own_rows if isinstance(cut, Rowwise) else own_results, checkpoint)


def own_rows(checkpoint: Path, rows: DataFrame, batch_id: int) -> DataFrame:
    """All rows of a batch or none, by its offset. What is computed in silence is computed all the
    same: Spark would leave out what it knows to be empty."""
    from pyspark.sql import functions as F  # noqa: N812

    logged = logged_batch(checkpoint, batch_id)
    is_silent = logged is not None and {o.owned for o in logged.gates()} == {NOTHING_YET}
    return rows.where(F.uuid() == "") if is_silent else rows


def _is_rowwise(tree: exp.Query) -> bool:
    """Spark itself refuses other aggregates in mode append, those that the parser does not know."""
    inside = [node for node in tree.find_all(exp.Subquery) if not _is_source(node)]
    unions = [node for node in tree.find_all(exp.Union) if node.args.get("distinct")]
    return not inside and not unions and tree.find(*_OF_SEVERAL_ROWS) is None


def _is_source(node: exp.Subquery) -> bool:
    return isinstance(node.parent, exp.From | exp.CTE | exp.SetOperation)


def _require_sink(name: str, query: Query) -> None:
    sink = query.sink
    if sink.type in _SINKS:
        raise cannot_move(
            name, f"sink '{sink.type}': {_SINKS[sink.type]}; use kafka, jdbc or python"
        )
    if sink.type == "python" and not sink.options.get("generations"):
        raise cannot_move(
            name,
            "its function cannot tell the batches of two checkpoints apart: take a third argument,"
            " generation, and set generations: true at the sink",
        )

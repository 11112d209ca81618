"""Prints the query's name and the rows of each batch that has any.

Spark's own console sink prints a frame for every empty batch too, and not whose it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spillway.options import Option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS: tuple[Option, ...] = ()
GUARANTEE = "none"
MOST_ROWS = 20


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    def write(rows: DataFrame, batch_id: int) -> None:
        found = rows.toArrow()
        if found.num_rows:
            print(shown(query, batch_id, found), flush=True)

    return lambda writer: writer.foreachBatch(write)


def shown(name: str, batch_id: int, rows: pa.Table) -> str:
    """The first rows of a batch in columns, below a line that says whose they are."""
    title = f"{name}, batch {batch_id}: {rows.num_rows:,} row{'s' * (rows.num_rows != 1)}"
    values = [rows.column_names]
    values += [[_text(value) for value in row.values()] for row in rows[:MOST_ROWS].to_pylist()]
    widths = [max(map(len, column)) for column in zip(*values, strict=True)]
    lines = ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in values]
    if rows.num_rows > MOST_ROWS:
        lines.append(f"  and {rows.num_rows - MOST_ROWS:,} more")
    return "\n".join([title, *lines])


def _text(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"start", "end"}:
        return f"{_text(value['start'])} to {_text(value['end'])}"
    if isinstance(value, datetime):
        digits = "milliseconds" if value.microsecond else "seconds"
        return value.replace(tzinfo=None).isoformat(" ", digits)
    return f"{value:.6g}" if isinstance(value, float) else str(value)

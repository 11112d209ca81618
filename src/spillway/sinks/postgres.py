"""Inserts rows into a PostgreSQL table, and updates those whose key is there already.

COPY into a temporary table, then INSERT ... ON CONFLICT DO UPDATE, all in one transaction.

A batch is there as a whole or not at all, and one that is run again after a crash writes the same
rows to the same keys: the table is as if every batch had run once. Of several rows of a batch with
the same key the last one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from spillway.errors import SpillwayError
from spillway.options import Option
from spillway.redaction import remember_value
from spillway.sinks.fence import Fence, overtaken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS: tuple[Option, ...] = (
    Option(
        "url",
        "text",
        "the database",
        required=True,
        pattern=r"^(jdbc:)?postgres(ql)?://",
        example="jdbc:postgresql://host:5432/database",
    ),
    Option(
        "table",
        "text",
        "the table; it is made if it is not there",
        required=True,
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$",
        example="schema.table",
    ),
    Option(
        "key",
        "texts",
        "the columns that identify a row",
        required=True,
        pattern=r"^[A-Za-z_]\w*$",
        example="[period_start, symbol]",
    ),
)
GUARANTEE = (
    "a batch is one transaction: COPY into a temporary table, then INSERT ... ON CONFLICT DO UPDATE"
    " by `key`. A batch that is run again writes the same values to the same keys, so the table is"
    " as if it had run once"
)
_FENCES = "spillway_fences"
_FROZEN_S = 15.0  # a transaction that does nothing for so long
_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_floating, "DOUBLE PRECISION"),
    (pa.types.is_string, "TEXT"),
    (pa.types.is_timestamp, "TIMESTAMPTZ"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_decimal, "NUMERIC"),
    (pa.types.is_binary, "BYTEA"),
)


def open_sink(query: str, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    return open_fenced_sink(query, given, None)


def open_fenced_sink(
    query: str, given: Mapping[str, Any], fence: Fence | None
) -> Callable[[Any], Any]:
    _prepare(given)

    def write(rows: DataFrame, batch_id: int) -> None:
        table = _table(query, rows, given["key"])
        if table.num_rows:
            upsert(table, given["url"], given["table"], given["key"], fence)

    return lambda writer: writer.foreachBatch(write)


def open_repair(
    query: str, given: Mapping[str, Any]
) -> Callable[[DataFrame, str | None, Sequence[datetime]], None]:
    """Instead of what the table has of the windows that begin then."""
    _prepare(given)

    def write(rows: DataFrame, period: str | None, begins: Sequence[datetime]) -> None:
        table = _table(query, rows, given["key"])
        stale = None if period is None else (f"{period}_start", begins)
        upsert(table, given["url"], given["table"], given["key"], stale=stale)

    return write


def _prepare(given: Mapping[str, Any]) -> None:
    client()
    remember_value(unquote(urlsplit(given["url"].removeprefix("jdbc:")).password or ""))


def _table(query: str, rows: DataFrame, key: Sequence[str]) -> pa.Table:
    table: pa.Table = _flat(rows).toArrow()
    for column in key:
        if column not in table.column_names:
            raise SpillwayError(
                f"queries.{query}.sink.key names '{column}':"
                f" the result has {', '.join(table.column_names)}"
            )
    return table


def upsert(
    rows: pa.Table,
    url: str,
    table: str,
    key: Sequence[str],
    fence: Fence | None = None,
    stale: tuple[str, Sequence[datetime]] | None = None,
) -> None:
    """All rows in one transaction; a table that is not there is made. What is stale, by a column's
    values, goes in the same one."""
    names = rows.column_names
    declared = ", ".join(f"{_quoted(f.name)} {_type(f)}" for f in rows.schema)
    primary = ", ".join(map(_quoted, key))
    columns = ", ".join(map(_quoted, names))
    changed = [f"{_quoted(n)} = EXCLUDED.{_quoted(n)}" for n in names if n not in key]
    action = f"DO UPDATE SET {', '.join(changed)}" if changed else "DO NOTHING"
    target = ".".join(map(_quoted, table.split(".")))
    with client().connect(url.removeprefix("jdbc:")) as connection:
        cursor = connection.cursor()
        if fence is not None:
            _pass(cursor, fence)
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {target} ({declared}, PRIMARY KEY ({primary}))")
        if stale is not None:
            cursor.execute(
                f"DELETE FROM {target} WHERE {_quoted(stale[0])} = ANY(%s)", (list(stale[1]),)
            )
        cursor.execute(f"CREATE TEMPORARY TABLE batch ({declared}) ON COMMIT DROP")
        with cursor.copy(f"COPY batch ({columns}) FROM STDIN") as copy:
            for batch in rows.to_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)
        # ctid is the order of insertion in a fresh table
        cursor.execute(
            f"INSERT INTO {target} ({columns}) SELECT DISTINCT ON ({primary}) {columns} FROM batch"
            f" ORDER BY {primary}, ctid DESC ON CONFLICT ({primary}) {action}"
        )


def _pass(cursor: Any, fence: Fence) -> None:
    """Raises where a later epoch has written. The row stays locked until the rows are in: one that
    freezes with the lock is ended by the server, or its successor would wait for it for ever."""
    cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_FROZEN_S:g}s'")
    cursor.execute(
        f"CREATE TABLE IF NOT EXISTS {_FENCES} (owner TEXT, generation BIGINT, epoch BIGINT,"
        " PRIMARY KEY (owner, generation))"
    )
    cursor.execute(
        f"INSERT INTO {_FENCES} AS held VALUES (%s, %s, %s) ON CONFLICT (owner, generation)"
        " DO UPDATE SET epoch = EXCLUDED.epoch WHERE held.epoch <= EXCLUDED.epoch RETURNING epoch",
        (fence.owner, fence.generation, fence.epoch),
    )
    if cursor.fetchone() is None:
        raise overtaken(fence)


def _flat(rows: DataFrame) -> DataFrame:
    """Structs as columns: a window `period` becomes period_start and period_end."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    flat: list[Any] = []
    for field in rows.schema:
        if isinstance(field.dataType, StructType):
            flat += [
                F.col(f"`{field.name}`.`{inner}`").alias(f"{field.name}_{inner}")
                for inner in field.dataType.names
            ]
        else:
            flat.append(F.col(f"`{field.name}`"))
    return rows.select(*flat)


def _type(field: pa.Field) -> str:
    for fits, name in _TYPES:
        if fits(field.type):
            return name
    raise SpillwayError(
        f"column '{field.name}' is {field.type}: sink 'jdbc' takes numbers, texts, booleans, dates"
        " and timestamps; turn it into a text with to_json"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def client() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise SpillwayError(
            "sink 'jdbc' needs psycopg: pip install 'spillway-spark[postgres]'"
        ) from error
    return psycopg

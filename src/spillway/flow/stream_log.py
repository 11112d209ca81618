"""The log behind a gate of a flow, opened again: for an audit that has to look at the data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow
from spillway.logs import catalog
from spillway.ports import Log

_ATOMIC: Mapping[str, types.DataType] = {
    kind.simpleString(): kind
    for kind in (
        types.BooleanType(),
        types.ByteType(),
        types.ShortType(),
        types.IntegerType(),
        types.LongType(),
        types.FloatType(),
        types.DoubleType(),
        types.StringType(),
        types.BinaryType(),
        types.DateType(),
        types.TimestampType(),
    )
}


def log_of(flow: Flow, gate: str, pinned: Mapping[str, str]) -> Log:
    """`gate` is 'query/stream'; `pinned` are the options that its first start has fixed."""
    name = gate.rpartition("/")[2]
    streams = expanded(flow, Path()).streams
    if name not in streams:
        raise unknown_name("stream of the gate", name, streams)
    stream = streams[name]
    options = {key: str(value) for key, value in stream.options.items()}
    schema = None if stream.columns is None else _schema(name, stream.columns)
    look = catalog.without_consequences({"source": stream.source or "", **options, **pinned})
    return catalog.open_log(look, schema)


def _schema(name: str, columns: Mapping[str, str]) -> Any:
    fields = []
    for column, kind in columns.items():
        found = _ATOMIC.get(kind.strip().lower())
        if found is None:
            raise SpillwayError(
                f"streams.{name}.columns.{column} is {kind}: an audit without Spark reads only"
                f" {', '.join(_ATOMIC)}"
            )
        fields.append(types.StructField(column, found))
    return to_arrow_schema(types.StructType(fields), timezone="UTC")

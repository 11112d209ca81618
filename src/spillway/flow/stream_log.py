"""The log behind a gate of a flow, opened again: for an audit that has to look at the data."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow, Stream
from spillway.flow.reading import columns_read
from spillway.flow.types import spark_type
from spillway.logs import catalog
from spillway.options import written
from spillway.ports import Log


def log_of(flow: Flow, gate: str, pinned: Mapping[str, str]) -> Log:
    """`gate` is 'query/stream'; `pinned` are the options that its first start has fixed."""
    query, _, name = gate.rpartition("/")
    whole = expanded(flow, Path())
    if name not in whole.streams:
        raise unknown_name("stream of the gate", name, whole.streams)
    stream = whole.streams[name]
    options = {key: written(value) for key, value in stream.options.items()}
    asked = declared_columns(name, stream)
    read = columns_read(whole, query, name) if query in whole.queries else None
    if asked is not None and read is not None:
        asked = StructType([field for field in asked if field.name in read])
    schema = None if asked is None else to_arrow_schema(asked, timezone="UTC")
    look = catalog.without_consequences({"source": stream.source or "", **options, **pinned})
    return catalog.open_log(look, schema)


def declared_columns(name: str, stream: Stream) -> StructType | None:
    """The key `columns`; raises where a type is none, with the column's place."""
    if stream.columns is None:
        return None
    fields = []
    for column, text in stream.columns.items():
        try:
            fields.append(StructField(column, spark_type(text)))
        except SpillwayError as error:
            raise SpillwayError(f"streams.{name}.columns.{column}: {error}") from error
    return StructType(fields)

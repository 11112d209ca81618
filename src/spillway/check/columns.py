"""What columns a stream has, as far as that can be known without Spark."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructType

from spillway.clock import WallClock
from spillway.errors import SpillwayError
from spillway.flow.flow import Stream
from spillway.flow.stream_log import declared_columns
from spillway.logs import catalog
from spillway.options import written

Columns = Mapping[str, DataType | None]  # None: of a type that only the data says


def columns_of(name: str, stream: Stream) -> Columns | None:
    """Of a stream over a log, which is asked as a run would ask it; None: unknown until it runs."""
    asked = declared_columns(name, stream)
    schema = None if asked is None else to_arrow_schema(asked, timezone="UTC")
    options = {key: written(value) for key, value in stream.options.items()}
    options = catalog.pinned({**options, "source": stream.source or ""}, WallClock().now_s())
    log = catalog.open_log(options, schema)
    if stream.source == "replay":
        return _of_file(Path(options["path"]), asked)
    if stream.source == "files" and asked is None and not Path(options["path"]).exists():
        return None  # the query that writes it may come later
    if stream.source in catalog.STARTED:
        log.extent(WallClock().now_s())  # rates and workloads are looked at here
    return asked_or_own(asked, log.columns())


def asked_or_own(asked: StructType | None, own: pa.Schema) -> Columns:
    kinds = asked if asked is not None else from_arrow_schema(own)
    return {field.name: field.dataType for field in kinds.fields}


def _of_file(path: Path, asked: StructType | None) -> Columns | None:
    """The names of a file's columns, without reading it; the types of a CSV file depend on all."""
    if not path.is_file():
        raise SpillwayError(f"option 'path': file {path} does not exist")
    own: dict[str, DataType | None] | None = None
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            own = dict(asked_or_own(None, pq.read_schema(path)))
        elif path.suffix == ".csv" or path.name.endswith(".csv.gz"):
            from pyarrow import csv

            with csv.open_csv(path) as reader:
                own = dict.fromkeys(reader.schema.names)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise SpillwayError(f"{path} cannot be read: {error}") from error
    if asked is None:
        return own
    for column in asked.names if own is not None else ():
        if column not in (own or {}):
            raise SpillwayError(f"{path} has no column '{column}': it has {', '.join(own or {})}")
    return asked_or_own(asked, pa.schema([]))

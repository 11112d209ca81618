"""Where a query's results go."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spillway.queries.flow import ConsoleSink, MemorySink, NoopSink, ParquetSink, Query


def start(frame: DataFrame, name: str, query: Query, checkpoint: str) -> StreamingQuery:
    """Start the query; its batches run until it is stopped."""
    writer = frame.writeStream.queryName(name).outputMode(query.mode)
    if not isinstance(query.sink, MemorySink):  # memory cannot recover from a checkpoint
        writer = writer.option("checkpointLocation", checkpoint)
    started: StreamingQuery = _aim(writer, query.sink).start()
    return started


def _aim(writer: Any, sink: object) -> Any:
    match sink:
        case ConsoleSink():
            return writer.format("console").option("truncate", "false")
        case MemorySink():
            return writer.format("memory")
        case NoopSink():
            return writer.format("noop")
        case ParquetSink(path=path):
            return writer.format("parquet").option("path", path)
        case _:
            raise AssertionError(f"no such sink: {sink}")

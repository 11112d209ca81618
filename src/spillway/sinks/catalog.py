"""Where a query's results go.

Memory, noop and Parquet are Spark's own sinks. The others get every batch whole, by
`foreachBatch`: a batch that is run again after a crash has the same id and, because its offsets
are the same, the same rows. docs/flow.md says what each sink makes of that.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spillway.flow.flow import (
    ConsoleSink,
    Flow,
    JdbcSink,
    KafkaSink,
    MemorySink,
    NoopSink,
    ParquetSink,
    PythonSink,
    Query,
)
from spillway.sinks.console import console_writer
from spillway.sinks.kafka import kafka_writer
from spillway.sinks.postgres import postgres_writer
from spillway.sinks.python import python_writer

BATCH_SINKS = (KafkaSink, JdbcSink, PythonSink)
BatchWriter = Callable[[DataFrame, int], None]


def start(frame: DataFrame, name: str, query: Query, checkpoint: str) -> StreamingQuery:
    """Start the query; its batches run until it is stopped."""
    writer = frame.writeStream.queryName(name).outputMode(query.mode)
    if not isinstance(query.sink, MemorySink):  # memory cannot recover from a checkpoint
        writer = writer.option("checkpointLocation", checkpoint)
    started: StreamingQuery = aimed(writer, name, query.sink).start()
    return started


def require_ready(flow: Flow) -> None:
    """Raise for functions and client libraries that are not there, before Spark starts."""
    for name, query in flow.queries.items():
        if isinstance(query.sink, BATCH_SINKS):
            _batch_writer(name, query.sink)


def aimed(writer: Any, name: str, sink: object) -> Any:
    """The stream writer with its sink, not started."""
    match sink:
        case ConsoleSink():
            return writer.foreachBatch(console_writer(name))
        case MemorySink():
            return writer.format("memory")
        case NoopSink():
            return writer.format("noop")
        case ParquetSink(path=path):
            return writer.format("parquet").option("path", path)
        case _:
            return writer.foreachBatch(_batch_writer(name, sink))


def _batch_writer(name: str, sink: object) -> BatchWriter:
    match sink:
        case KafkaSink():
            return kafka_writer(name, sink)
        case JdbcSink():
            return postgres_writer(name, sink)
        case PythonSink(call=call):
            return python_writer(name, call)
        case _:
            raise AssertionError(f"no such sink: {sink}")

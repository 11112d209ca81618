"""What the tests of whole flows share: a query's result as a stream, and its batch answer."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.logs import catalog
from spillway.model import parse_duration_s

START_S = 1_700_000_000.0
NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def bounded(flow: Flow, tuples: Mapping[str, int], **options: str) -> Flow:
    """The flow over the first tuples of its streams, all of which have arrived long ago."""
    value = flow.model_dump(by_alias=True)
    for name, stream in value["streams"].items():
        stream["options"] |= {
            "start": str(START_S),
            "tuples": tuples[name],
            "startingOffsets": "earliest",
            **options,
        }
    return Flow.model_validate(value)


def streamed(spark: SparkSession, flow: Flow, query: str, root: Path) -> DataFrame:
    """The result over everything that is there, batch after batch, windows closed by watermarks."""
    application = Application(flow, spark, Folder(root=root))
    before = spark.conf.get(NO_DATA_BATCHES)
    spark.conf.set(NO_DATA_BATCHES, "true")
    try:
        running = (
            application.answers.frame(query)
            .writeStream.format("memory")
            .queryName(f"streamed_{query}")
            .outputMode(flow.queries[query].mode)
            .trigger(availableNow=True)
            .option("checkpointLocation", str(root / "checkpoint"))
            .start()
        )
        assert running.awaitTermination(120)
        error = running.exception()
        if error is not None:
            raise error
    finally:
        spark.conf.set(NO_DATA_BATCHES, before or "false")
    return spark.table(f"streamed_{query}")


def load_streams(spark: SparkSession, flow: Flow) -> dict[str, Any]:
    """Every stream as a table of all its tuples; the time up to which its windows are closed."""
    closed: dict[str, Any] = {}
    for name, stream in flow.streams.items():
        options = {key: str(value) for key, value in stream.options.items()}
        log = catalog.open_log({"source": stream.source or "", **options}, None)
        batches = [b for span in log.extent(2e9) for b in log.read(span, None)]
        table = pa.Table.from_batches(batches)
        frame = spark.createDataFrame(table)
        frame.createOrReplaceTempView(name)
        if stream.event_time:
            [[newest]] = frame.selectExpr(f"max({stream.event_time})").collect()
            closed[name] = newest.timestamp() - parse_duration_s(stream.watermark)
    return closed


def rows_of(frame: DataFrame) -> Counter[Any]:
    return Counter(tuple(row) for row in frame.collect())

"""Watermarks over a gate with heartbeats."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spillway.plants.spark.rows import HEARTBEAT


def with_watermark(frame: DataFrame, event_time: str, lateness: str) -> DataFrame:
    """`frame.withWatermark(event_time, lateness)`, with heartbeats counted and then left out.

    The condition names the event time, because Spark pushes a filter that does not below the
    watermark, where the heartbeat would be gone before it is counted.
    """
    marked = frame.withWatermark(event_time, lateness)
    if HEARTBEAT not in frame.columns:
        return marked
    tuples = ~(F.col(HEARTBEAT) & F.col(event_time).isNotNull())
    return marked.where(tuples).drop(HEARTBEAT)

"""Watermarks over a gate with heartbeats."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spillway.hosts.spark.worker.rows import HEARTBEAT


def with_watermark(frame: DataFrame, event_time: str, lateness: str) -> DataFrame:
    """`frame.withWatermark(event_time, lateness)`, with heartbeats counted and then left out.

    Spark pushes filters below the watermark, its own and the user's, and a heartbeat that is
    dropped there is never counted. It moves no filter past one that is not deterministic, so the
    one that drops heartbeats is made to look so; no tuple pays for it, because the first half of
    the condition already holds.
    """
    marked = frame.withWatermark(event_time, lateness)
    if HEARTBEAT not in frame.columns:
        return marked
    return marked.where(~F.col(HEARTBEAT) | (F.uuid() == "")).drop(HEARTBEAT)

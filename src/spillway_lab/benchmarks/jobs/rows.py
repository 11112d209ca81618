"""Jobs whose results are rows: a map, a join, duplicates dropped."""

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spillway_lab.benchmarks.jobs.job import Expected, Job, as_rows, of_ids
from spillway_lab.benchmarks.jobs.records import Records
from spillway_lab.benchmarks.jobs.windows import EIGHT


def mapped(frames: Sequence[DataFrame]) -> list[DataFrame]:
    return [as_rows(frames[0].where("id % 2 = 0"), F.col("id"), F.lit(0), F.col("key"))]


def even_ids(streams: Sequence[Records], begun_us: int) -> Expected:
    return Expected(rows=of_ids(np.arange(0, streams[0].count, 2)))


def joined(frames: Sequence[DataFrame]) -> list[DataFrame]:
    left, right = (frame.withWatermark("event_time", "5 seconds") for frame in frames)
    near = F.expr(
        "l.id = r.id AND r.event_time BETWEEN l.event_time - INTERVAL 1 SECOND"
        " AND l.event_time + INTERVAL 1 SECOND"
    )
    pairs = left.alias("l").join(right.alias("r"), near)
    return [as_rows(pairs, F.col("l.id"), F.lit(0), F.col("r.key"))]


def all_ids(streams: Sequence[Records], begun_us: int) -> Expected:
    return Expected(rows=of_ids(np.arange(min(records.count for records in streams))))


def without_duplicates(frames: Sequence[DataFrame]) -> list[DataFrame]:
    """Two records for each half."""
    rows = frames[0].withWatermark("event_time", "5 seconds")
    halves = rows.withColumn("half", F.expr("id div 2")).dropDuplicatesWithinWatermark(["half"])
    return [as_rows(halves, F.col("half"), F.lit(0), F.lit(1))]


def halves(streams: Sequence[Records], begun_us: int) -> Expected:
    return Expected(rows={(half, 0): 1 for half in range((streams[0].count + 1) // 2)})


JOBS = (
    Job(
        name="join",
        title="join of two topics, 1,000 rows/s each, `joint`",
        streams=(Records.even(1_000.0, 35.0), Records.even(1_000.0, 35.0)),
        queries=joined,
        expected=all_ids,
        settings=EIGHT,
        options={"joint": "matches"},
    ),
    Job(
        name="map",
        title="stateless map to files, 2,000 rows/s",
        streams=(Records.even(2_000.0, 35.0),),
        queries=mapped,
        expected=even_ids,
    ),
    Job(
        name="duplicates",
        title="duplicates dropped within the watermark, 2,000 rows/s",
        streams=(Records.even(2_000.0, 35.0),),
        queries=without_duplicates,
        expected=halves,
        settings=EIGHT,
    ),
)

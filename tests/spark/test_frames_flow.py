"""A query in DataFrame code gives what the same one in SQL gives."""

from pathlib import Path
from typing import Any

import pytest
from flows import bounded, streamed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spillway.flow.flow import Flow

pytestmark = pytest.mark.spark


def counted(ticks: DataFrame) -> DataFrame:
    period = F.window("event_time", "10 seconds").alias("period")
    return ticks.where("value > 0.5").groupBy(period, "key").agg(F.count("*").alias("n"))


SQL = (
    "SELECT window(event_time, '10 seconds') AS period, key, count(*) AS n FROM ticks"
    " WHERE value > 0.5 GROUP BY window(event_time, '10 seconds'), key"
)


def rows(spark: SparkSession, root: Path, **query: Any) -> list[str]:
    flow = Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic", "event_time": "event_time"}},
            "classes": {"gold": {"delay": "2s"}},
            "queries": {"q": {"class": "gold", "mode": "update", **query}},
        }
    )
    found = streamed(spark, bounded(flow, {"ticks": 30_000}), "q", root)
    last = found.groupBy("period", "key").agg(F.max("n").alias("n"))
    return sorted(str(row) for row in last.collect())


def test_a_function_of_frames_gives_what_its_sql_gives(spark: SparkSession, tmp_path: Path) -> None:
    from_sql = rows(spark, tmp_path / "sql", sql=SQL)
    from_frames = rows(spark, tmp_path / "frames", python=counted)
    assert len(from_sql) > 100
    assert from_frames == from_sql

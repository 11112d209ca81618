"""Spark's own analyser, asked before anything starts."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spillway.check.problems import problems_of
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.analysing import analysed_in

pytestmark = pytest.mark.spark


def query(**given: Any) -> dict[str, Any]:
    return {"class": "gold", "sink": {"type": "noop"}, **given}


def wrong(ticks: DataFrame) -> DataFrame:
    return ticks.select("prise")


def broken(ticks: DataFrame) -> DataFrame:
    raise KeyError("no such thing")


QUERIES = {
    "right": query(sql="SELECT key, value FROM ticks WHERE value > 0.9"),
    "unwatermarked": query(sql="SELECT key, count(*) AS n FROM ticks GROUP BY key"),
    "wrong": query(python=wrong),
    "broken": query(python=broken),
}


REFUSED = [  # as `check` does without Spark
    "SELECT key FROM ticks ORDER BY key",
    "SELECT key FROM ticks HAVING value > 3",
    "SELECT key.x FROM ticks",
    "SELECT value[0] FROM ticks",
    "SELECT key FROM ticks WHERE value",
    "SELECT * EXCEPT (kee) FROM ticks",
    "SELECT key, rank() OVER (ORDER BY value) AS r FROM ticks",
    "SELECT count(*) AS n FROM ticks GROUP BY window(event_time, '10 secs ago')",
    "SELECT count(*) AS n FROM ticks GROUP BY window(event_time, '10 seconds', '20 seconds')",
]


def test_what_is_refused_without_spark_spark_refuses_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    queries = {f"q{number}": query(sql=sql) for number, sql in enumerate(REFUSED)}
    flow = Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic", "event_time": "event_time"}},
            "classes": {"gold": {"delay": "2s"}},
            "queries": queries,
        }
    )
    found = {line.partition(":")[0] for line in analysed_in(spark, flow, tmp_path)}
    here = {".".join(map(str, problem.place[:2])) for problem in problems_of(flow)}
    assert found == here == {f"queries.{name}" for name in queries}


def test_each_query_that_spark_would_refuse_is_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic", "event_time": "event_time"}},
            "classes": {"gold": {"delay": "2s"}},
            "queries": QUERIES,
        }
    )
    found = analysed_in(spark, flow, tmp_path)
    assert [line.partition(":")[0] for line in found] == [
        "queries.unwatermarked",
        "queries.wrong",
        "queries.broken",
    ]
    assert "watermark" in found[0]
    assert "prise" in found[1]
    assert "no such thing" in found[2]
    assert all("\n" not in line for line in found)
    assert not spark.streams.active

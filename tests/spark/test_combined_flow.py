"""Windowed aggregates computed in parts where the stream is read: the answers of Spark's own."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import bounded, rows_of, streamed
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder

pytestmark = pytest.mark.spark

TUPLES = 40_000  # 20 s
STREAM = {
    "source": "synthetic",
    "options": {
        "rate": 2_000,
        "columns": "id position, key key(7, 1.0), word string(5), x double(-50, 50), n int(-9, 9),"
        " at time(4s)",
        "partitions": 2,
        "max_batch": 9_000,
        "parallelism": 3,
        "manager": "none",
    },
    "event_time": "at",
    "watermark": "1s",  # four seconds of lateness: many tuples are late
}
WINDOW = "window(at, '2 seconds')"
QUERIES = {
    "tumbling": f"SELECT {WINDOW} AS period, key, count(*), sum(n), avg(n) AS mean, min(x), max(x),"
    f" max(word), count(word) AS words FROM ticks GROUP BY {WINDOW}, key",
    "sliding": "SELECT window(at, '3 seconds', '2 seconds') AS period, sum(n) AS s, max(at) AS last"
    " FROM ticks GROUP BY window(at, '3 seconds', '2 seconds')",
    "filtered": f"SELECT {WINDOW}.start AS begins, upper(word) AS w, count(*) AS n, sum(n) AS s"
    f" FROM ticks WHERE x > 10 AND word <> 'a' GROUP BY {WINDOW}, upper(word) HAVING sum(n) <> 3",
}


def flow(sql: str, **query: object) -> Flow:
    given = Flow.model_validate(
        {
            "streams": {"ticks": STREAM},
            "classes": {"default": {"delay": "10m"}},
            "queries": {"q": {"sql": sql, "sink": {"type": "noop"}, **query}},
        }
    )
    return bounded(given, {"ticks": TUPLES})


def answer(spark: SparkSession, given: Flow, root: Path) -> tuple[Counter[Any], Any]:
    found = streamed(spark, given, "q", root)
    return rows_of(found), found.schema


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_partial_rows_give_the_rows_and_types_of_tuples(
    spark: SparkSession, sql: str, tmp_path: Path
) -> None:
    by_tuple = answer(spark, flow(sql, combine=False), tmp_path / "tuples")
    by_parts = answer(spark, flow(sql), tmp_path / "parts")
    assert sum(by_tuple[0].values()) > 5
    assert by_parts == by_tuple


def test_spark_sees_partial_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    given = flow(QUERIES["tumbling"])
    streamed(spark, given, "q", tmp_path)
    [query] = [q for q in spark.streams.active if q.name == "streamed_q"] or [None]
    assert query is None
    application = Application(given, spark, Folder(root=tmp_path / "other"))
    try:
        plan = application.answers.frame("q")._jdf.queryExecution().analyzed().toString()
    finally:
        application.stop()
    assert "_sum_n" in plan
    assert "word#" not in plan.split("Relation")[-1]


def test_a_checkpoint_goes_on_as_it_was_begun(spark: SparkSession, tmp_path: Path) -> None:
    """What its state holds fits no other plan."""
    given = flow(QUERIES["sliding"])
    folder = Folder(root=tmp_path)
    application = Application(given, spark, folder)
    try:
        assert application.answers.combined("q") is not None
        offsets = folder.checkpoint("q") / "offsets"
        offsets.mkdir(parents=True)
        (offsets / "0").touch()
        assert application.answers.combined("q") is None, "begun by an earlier version"
        folder.combination("q").parent.mkdir()
        folder.combination("q").touch()
        assert application.answers.combined("q") is not None
    finally:
        application.stop()

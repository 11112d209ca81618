"""Windowed aggregates computed in parts where the stream is read: the answers of Spark's own."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import bounded, rows_of, streamed
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder

pytestmark = pytest.mark.spark

TUPLES = 40_000  # 20 s
STREAM = {
    "source": "synthetic",
    "options": {
        "rate": 2_000,
        "columns": "id position, key key(7, 1.0), word string(5), x double(-50, 50), n int(-9, 9),"
        " at time(12s)",
        "partitions": 2,
        "first_batch": 9_000,
        "max_batch": 9_000,
        "parallelism": 3,
        "manager": "none",
    },
    "event_time": "at",
    "watermark": "100ms",  # event times are up to twelve seconds behind: many are late
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
    return rows_of(found), [(f.name, f.dataType, f.nullable) for f in found.schema]


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_partial_rows_give_the_rows_and_types_of_tuples(
    spark: SparkSession, sql: str, tmp_path: Path
) -> None:
    by_tuple = answer(spark, flow(sql, combine=False), tmp_path / "tuples")
    by_parts = answer(spark, flow(sql), tmp_path / "parts")
    assert sum(by_tuple[0].values()) > 5
    assert by_parts[1] == by_tuple[1]
    assert by_parts[0] == by_tuple[0]


def in_batches(spark: SparkSession, given: Flow, root: Path) -> tuple[Counter[Any], list[int], int]:
    """The result, where each batch ended, and how many rows came too late."""
    application, name = Application(given, spark, Folder(root=root)), f"late_{root.name}"
    try:
        query = (
            application.answers.frame("q")
            .writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", str(root / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
        ended = [p for p in query.recentProgress if p["numInputRows"]]
        query.stop()
    finally:
        application.stop()
    ends = [decode(json.loads(p["sources"][0]["endOffset"])) for p in ended]
    late = sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in ended)
    return rows_of(spark.table(name)), [e.totals.admitted for e in ends], late


def test_tuples_that_come_too_late_are_as_late_in_partial_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    by_tuple = in_batches(spark, flow(QUERIES["tumbling"], combine=False), tmp_path / "tuples")
    by_parts = in_batches(spark, flow(QUERIES["tumbling"]), tmp_path / "parts")
    assert by_tuple[1] == by_parts[1], "the same batches"
    assert len(by_tuple[1]) >= 4
    assert min(by_tuple[2], by_parts[2]) > 0
    assert sum(by_tuple[0].values()) > 20
    assert by_parts[0] == by_tuple[0]


def test_spark_sees_partial_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    application = Application(flow(QUERIES["tumbling"]), spark, Folder(root=tmp_path))
    try:
        frame = application.answers.frame("q")
        given = application.answers.combined("q")
        assert given is not None
        source = application.gates.read("q", "ticks", given.combination)
        assert len(frame.columns) == 9
    finally:
        application.stop()
    assert source.columns == [
        *("at", "key", "_count", "_sum_n", "_total_n", "_count_n"),
        *("_min_x", "_max_x", "_max_word", "_count_word"),
    ]


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
        folder.combination("q").touch()
        assert application.answers.combined("q") is not None
    finally:
        application.stop()

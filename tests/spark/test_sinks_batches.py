"""Sinks that get every batch whole: PostgreSQL, Kafka and a Python function."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from flows import bounded
from pyspark.sql import SparkSession

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.sinks import catalog as sinks
from spillway.sinks.fence import Fence
from spillway.sinks.postgres import upsert

pytestmark = pytest.mark.spark

COUNTS = """
    SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n, sum(id) AS total
    FROM ticks GROUP BY window(event_time, '5 seconds'), key
"""
TUPLES = 12_000


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to start")
    pytest.importorskip("psycopg")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


def rows_in(url: str, sql: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(sql).fetchall()


def run_to_the_end(
    spark: SparkSession, root: Path, sink: dict[str, Any], sql: str = COUNTS, mode: str = "update"
) -> None:
    """All tuples in several batches, through the flow's own sink."""
    stream = {"source": "synthetic", "options": {"rate": 1000}, "event_time": "event_time"}
    flow = Flow.model_validate(
        {
            "streams": {"ticks": stream},
            "classes": {"default": {"delay": "2s", "manager": "none"}},
            "queries": {"q": {"sql": sql, "mode": mode, "sink": sink}},
        }
    )
    flow = bounded(flow, {"ticks": TUPLES}, columns="id position, key key(5), event_time time")
    frame = Application(flow, spark, Folder(root=root)).answers.frame("q")
    writer = frame.writeStream.outputMode(mode).trigger(availableNow=True)
    aimed = sinks.aimed(writer, "q", flow.queries["q"].sink)
    query = aimed.option("checkpointLocation", str(root / "checkpoint")).start()
    assert query.awaitTermination(90)


def test_a_table_holds_the_newest_value_of_every_key(
    spark: SparkSession, postgres: str, tmp_path: Path
) -> None:
    sink = {
        "type": "jdbc",
        "url": f"jdbc:{postgres}",
        "table": "counts",
        "key": ["period_start", "key"],
    }
    run_to_the_end(spark, tmp_path, sink)
    found = rows_in(postgres, "SELECT count(*), sum(n), sum(total) FROM counts")
    keys = rows_in(postgres, "SELECT count(DISTINCT (period_start, key)) FROM counts")
    assert found[0][0] == keys[0][0] > 5
    assert found[0][1:] == (TUPLES, TUPLES * (TUPLES - 1) // 2)


def test_a_batch_that_is_written_again_changes_nothing(postgres: str) -> None:
    batch = pa.table({"key": [1, 2, 2], "name": ["a", "b", "c"]})
    upsert(batch, postgres, "again", ["key"])
    upsert(batch, postgres, "again", ["key"])
    assert rows_in(postgres, "SELECT * FROM again ORDER BY key") == [(1, "a"), (2, "c")]


def test_a_repair_takes_the_place_of_what_the_table_has_of_those_windows(postgres: str) -> None:
    first, second = (datetime(2026, 1, 31, 12, minute, tzinfo=UTC) for minute in (0, 1))

    def counts(*rows: tuple[datetime, str, int]) -> pa.Table:
        names = ("period_start", "key", "n")
        return pa.table([list(column) for column in zip(*rows, strict=True)], names=list(names))

    key = ["period_start", "key"]
    before = [(first, "a", 1), (first, "b", 2), (second, "a", 3)]
    upsert(counts(*before), postgres, "repaired", key)
    stale = ("period_start", [first])
    for _ in range(2):
        upsert(counts((first, "a", 9)), postgres, "repaired", key, stale=stale)
    found = rows_in(postgres, "SELECT key, n FROM repaired ORDER BY period_start, key")
    assert found == [("a", 9), ("a", 3)], "a group that fell out is gone, other windows are not"


def test_a_batch_that_fails_leaves_nothing_behind(postgres: str) -> None:
    upsert(pa.table({"key": [1], "name": ["a"]}), postgres, "whole", ["key"])
    bad = pa.table({"key": [2, None], "name": ["b", "c"]})
    with pytest.raises(Exception, match="null value"):
        upsert(bad, postgres, "whole", ["key"])
    assert rows_in(postgres, "SELECT * FROM whole") == [(1, "a")]


def test_a_function_gets_every_row_once_with_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    seen: dict[int, list[int]] = {}
    module: Any = ModuleType("sink_of_the_test")
    module.take = lambda rows, batch_id: seen.update({batch_id: rows["id"].to_pylist()})
    sys.modules[module.__name__] = module
    sink = {"type": "python", "call": "sink_of_the_test:take"}
    run_to_the_end(spark, tmp_path, sink, "SELECT id FROM ticks WHERE key = 0", "append")
    ids = [number for rows in seen.values() for number in rows]
    assert len(ids) == len(set(ids)) > TUPLES / 10
    assert len(seen) > 1


def test_a_function_that_is_not_there_is_named_before_the_query_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = {"type": "python", "call": "json:no_such_function"}
    with pytest.raises(SpillwayError, match=r"queries\.q\.sink\.call .* no function"):
        run_to_the_end(spark, tmp_path, sink)


@pytest.mark.kafka
def test_a_topic_gets_every_row_as_json_with_its_key_and_batch(
    spark: SparkSession, tmp_path: Path, kafka_broker: Any
) -> None:
    from confluent_kafka import Consumer

    kafka_broker.create_topic("sink")

    sink = {"type": "kafka", "brokers": kafka_broker.bootstrap, "topic": "sink", "key": "key"}
    run_to_the_end(spark, tmp_path, sink, "SELECT id, key FROM ticks WHERE key = 0", "append")
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap,
            "group.id": "test",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["sink"])
    messages: list[Any] = []
    while got := consumer.consume(5000, timeout=8.0):
        messages += got
    consumer.close()
    ids = [json.loads(message.value())["id"] for message in messages]
    assert len(ids) == len(set(ids)) > TUPLES / 10
    assert {message.key() for message in messages} == {b"0"}
    assert all(dict(message.headers())["query"] == b"q" for message in messages)


def test_a_node_that_was_overtaken_writes_nothing_more(postgres: str) -> None:
    table = "fenced"
    older = Fence(owner="tests/q", generation=1, epoch=3)
    newer = Fence(owner="tests/q", generation=1, epoch=5)
    rows = pa.table({"key": [1], "n": [1]})
    upsert(rows, postgres, table, ["key"], older)
    upsert(rows, postgres, table, ["key"], older)  # a batch that is run again
    upsert(pa.table({"key": [1], "n": [2]}), postgres, table, ["key"], newer)
    with pytest.raises(SpillwayError, match="'tests/q' runs on another node"):
        upsert(rows, postgres, table, ["key"], older)
    assert rows_in(postgres, f"SELECT n FROM {table}") == [(2,)]
    another = Fence(owner="tests/q", generation=2, epoch=1)
    upsert(pa.table({"key": [2], "n": [7]}), postgres, table, ["key"], another)
    assert rows_in(postgres, f"SELECT n FROM {table} ORDER BY key") == [(2,), (7,)]


def test_a_node_that_froze_in_its_transaction_does_not_hold_up_the_next_one(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from spillway.sinks import postgres as sink

    monkeypatch.setattr(sink, "_FROZEN_S", 1.0)
    frozen = psycopg.connect(postgres)
    sink._pass(frozen.cursor(), Fence(owner="tests/frozen", generation=1, epoch=1))
    newer = Fence(owner="tests/frozen", generation=1, epoch=2)
    upsert(pa.table({"key": [1], "n": [1]}), postgres, "after_frozen", ["key"], newer)
    with pytest.raises(psycopg.Error):
        frozen.cursor().execute("SELECT 1")
    assert rows_in(postgres, "SELECT n FROM after_frozen") == [(1,)]

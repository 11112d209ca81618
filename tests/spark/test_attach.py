"""Classes over the queries of somebody's own application: DataFrames, any sink, no flow."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gates import batches_done, wait_until
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.api import attach, progress
from spillway.errors import SpillwayError
from spillway.journal.files import read_journal
from spillway.model import Decided

pytestmark = pytest.mark.spark

CLASSES: dict[str, dict[str, Any]] = {
    "gold": {"priority": 6, "delay": "p99 2s"},
    "bronze": {"delay": "5 seconds"},
}


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Callable[..., StreamingQuery]:
    def begin(name: str, class_name: str, **options: str) -> StreamingQuery:
        given = {"source": "synthetic", "rate": "2000", "delay": "2s", **options}
        frame = (
            spark.readStream.format("spillway")
            .options(**given)
            .option("class", class_name)
            .option("query", name)
            .load()
        )

        def count(rows: DataFrame, batch: int) -> None:
            rows.count()

        location = str(tmp_path / name)
        writer = frame.where("value > 0.5").writeStream.option("checkpointLocation", location)
        return writer.foreachBatch(count).start()

    return begin


def kept(query: StreamingQuery) -> float:
    [gate] = progress(query)
    return gate.kept_tuples / max(1, gate.offered_tuples)


def decided(folder: Path, query: str) -> Iterator[Decided]:
    for entry in read_journal(folder / "journal.jsonl"):
        if isinstance(entry, Decided) and entry.measurement.query == query:
            yield entry


def test_queries_join_classes_obey_changes_and_go_on_alone_after_detach(
    spark: SparkSession, start: Callable[..., StreamingQuery], tmp_path: Path
) -> None:
    third = {"manager": "fixed", "manager.keep_fraction": "0.3"}
    before = start("trends", "bronze", **third)
    wait_until(lambda: batches_done(before) >= 2)
    folder = tmp_path / "attached"
    attached = attach(spark, CLASSES, folder=folder, watch="on")
    after = start("fraud", "gold")
    wait_until(lambda: set(attached.flow.queries) == {"trends", "fraud"})
    classes = {name: query.class_name for name, query in attached.flow.queries.items()}
    assert classes == {"trends": "bronze", "fraud": "gold"}
    wait_until(lambda: 0.0 < kept(before) < 0.5)

    attached.change_all({"gold.delay": "9s", "bronze.shedding": "paused"}, by="the test")
    wait_until(lambda: kept(before) == 1.0)
    wait_until(lambda: any(d.measurement.target.delay_s == 9.0 for d in decided(folder, "fraud")))
    assert set(attached.progress) == {"trends", "fraud"}
    assert attached.url is not None
    state = get(f"{attached.url}/api/state", folder)
    assert {query["name"] for query in state["queries"]} == {"trends", "fraud"}

    attached.detach()
    reached = {query: batches_done(query) for query in (before, after)}
    for query, batch in reached.items():
        wait_until(lambda q=query, b=batch: batches_done(q) >= b + 3)  # type: ignore[misc]
    before.stop()
    after.stop()


def get(url: str, folder: Path) -> Any:
    import json
    from urllib.request import urlopen

    deadline_s = time.monotonic() + 60
    while True:
        with urlopen(url, timeout=10) as answer:
            found = json.loads(answer.read())
        if len(found["queries"]) == 2 or time.monotonic() > deadline_s:
            return found
        time.sleep(0.2)


def test_what_cannot_be_is_refused_before_anything_begins(spark: SparkSession) -> None:
    with pytest.raises(SpillwayError, match="the gates' to say: give their option 'manager'"):
        attach(spark, {"gold": {"delay": "2s", "manager": "ctrl"}})
    with pytest.raises(SpillwayError, match=r"classes\.gold"):
        attach(spark, {"gold": {"delay": "soon"}})
    with pytest.raises(SpillwayError, match="classes is empty"):
        attach(spark, {})

"""A flow looks after its queries: restarts what died, refuses what cannot start, joins streams."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from drivers import PLANNER, processes
from pyspark.sql import SparkSession

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder, audits

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def flow(streams: dict[str, Any], sql: str, queries: tuple[str, ...] = ("q",)) -> Flow:
    query = {"class": "only", "sql": sql, "sink": {"type": "noop"}}
    return Flow.model_validate(
        {
            "streams": streams,
            "classes": {"only": {"delay": "1s"}},
            "queries": dict.fromkeys(queries, query),
        }
    )


def ticks(rate: int, **more: Any) -> dict[str, Any]:
    return {"source": "synthetic", "options": {"rate": rate}, **more}


@contextmanager
def running(spark: SparkSession, what: Flow, root: Path) -> Iterator[Application]:
    application = Application(what, spark, Folder(root=root))
    application.start()
    try:
        yield application
    finally:
        application.stop()


def supervise_until(application: Application, done: Callable[[], bool], within_s: float) -> None:
    ends_s = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < ends_s, "it took too long"
        application.supervise()
        time.sleep(0.1)


def test_a_query_whose_planner_was_killed_goes_on_by_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    what = flow({"ticks": ticks(200_000)}, "SELECT key, value FROM ticks WHERE value > 0.5")
    with running(spark, what, tmp_path) as application:
        supervise_until(application, lambda: len(application.batches) >= 5, 180.0)
        [planner] = processes(PLANNER)
        planner.kill()
        supervise_until(application, lambda: application.restarts("q") == 1, 180.0)
        seen = len(application.batches)
        supervise_until(application, lambda: len(application.batches) >= seen + 5, 180.0)
        folder = application.folder
    [audit] = audits(folder.ledger("q", "ticks"), folder.checkpoint("q"))
    assert audit.exact
    assert len(audit.batches) >= 10
    events = [json.loads(line) for line in folder.journal.read_text().splitlines()]
    [restarted] = [e for e in events if e.get("event") == "restarted"]
    assert restarted["query"] == "q"
    assert restarted["error"]


def test_a_query_that_cannot_start_is_refused_with_its_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    what = flow(
        {"ticks": ticks(1000, columns={"nothing": "map<string, int>"})}, "SELECT * FROM ticks"
    )
    with (
        pytest.raises(SpillwayError, match="nothing"),
        running(spark, what, tmp_path) as application,
    ):
        supervise_until(application, lambda: False, 120.0)


def test_both_streams_of_a_join_take_part_in_every_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two such queries on two cores: four gates, and slots for two batches."""
    timed = {"event_time": "event_time", "watermark": "5s"}
    what = flow(
        {"left_side": ticks(2000, **timed), "right_side": ticks(2000, **timed)},
        "SELECT l.id, r.value FROM left_side l JOIN right_side r ON l.id = r.id"
        " AND r.event_time BETWEEN l.event_time - INTERVAL 1 SECOND"
        " AND l.event_time + INTERVAL 1 SECOND",
        queries=("q", "r"),
    )
    with running(spark, what, tmp_path) as application:
        supervise_until(application, lambda: len(application.batches) >= 44, 300.0)
        folder = application.folder
    for query, stream in product(("q", "r"), ("left_side", "right_side")):
        [audit] = audits(folder.ledger(query, stream), None)
        assert audit.exact
    of_a_batch = Counter((b.gate.partition("/")[0], b.ended_s) for b in application.batches)
    gates = list(of_a_batch.values())[6:]
    assert gates.count(2) > 0.9 * len(gates)

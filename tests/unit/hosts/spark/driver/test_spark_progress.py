"""What is read of Spark's words on a finished batch."""

import json
from typing import Any

from spillway.hosts.spark.driver.progress import parse_progress
from spillway.sinks.catalog import RESULTS

SAID: dict[str, Any] = {
    "name": "q",
    "runId": "r",
    "batchId": 7,
    "timestamp": "2026-01-31T12:00:00.000Z",
    "durationMs": {"triggerExecution": 1500},
    "numInputRows": 100,
    "sources": [],
}


def test_results_are_what_spark_counted_on_their_way_to_the_sink() -> None:
    counted = {**SAID, "observedMetrics": {RESULTS: {RESULTS: 42}}}
    assert parse_progress(json.dumps(counted)).results == 42


def test_nothing_is_known_of_results_that_were_not_counted() -> None:
    assert parse_progress(json.dumps(SAID)).results is None
    others = {**SAID, "observedMetrics": {"somebody's": {"n": 1}}}
    assert parse_progress(json.dumps(others)).results is None

"""Delay target and error budget that cannot both hold: each query gives what it chose to give."""

import json
from pathlib import Path
from typing import Any

import pytest
from gates import wait_until
from pyspark.sql import SparkSession

from spillway.cli.run import summarise
from spillway.cli.watch import Progress, table
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder

pytestmark = pytest.mark.spark


def query(stream: str, gives: str) -> dict[str, Any]:
    return {
        "sql": (
            f"SELECT window(event_time, '10 seconds') AS period, key, sum(value) AS total"
            f" FROM {stream} GROUP BY window(event_time, '10 seconds'), key"
        ),
        "estimate": True,
        "error": "1%",
        "error_tuples": 1_000,  # needs 99 % of the tuples
        "gives": gives,
        "sink": {"type": "noop"},
    }


def stream() -> dict[str, Any]:
    return {
        "source": "synthetic",
        # Short batches also when delay gives: otherwise each one would be longer than the last.
        "options": {"rate": 5_000_000, "max_batch": 600_000},
        "event_time": "event_time",
    }


FLOW = Flow.model_validate(
    {
        "streams": {"clicks": stream(), "views": stream()},
        "classes": {"default": {"delay": "1500ms"}},
        "queries": {"patient": query("clicks", "delay"), "prompt": query("views", "error")},
    }
)


def test_the_screen_and_the_journal_say_which_one_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    application = Application(FLOW, spark, Folder(root=tmp_path))
    application.start()
    try:
        wait_until(
            lambda: (
                "delay gives" in str(application.conditions.get("queries.patient"))
                and "error gives" in str(application.conditions.get("queries.prompt"))
            )
        )
        said = str(table(application, Progress()).caption)
        summary = summarise(application)["queries"]
        batches = list(application.batches)
    finally:
        application.stop()
    assert "patient: delay gives" in said
    assert "prompt: error gives" in said
    assert "needs 99%" in said
    assert "delay gives" in summary["patient"]["budget"]
    kept = {
        name: [b.kept_tuples / b.offered_tuples for b in batches if b.gate.startswith(name)]
        for name in ("patient", "prompt")
    }
    assert min(kept["patient"]) > 0.98
    assert kept["prompt"][-1] < 0.98
    events = [json.loads(line) for line in application.folder.journal.read_text().splitlines()]
    noted = {e["query"]: e["verdict"] for e in events if e.get("event") == "budget"}
    assert set(noted) == {"patient", "prompt"}

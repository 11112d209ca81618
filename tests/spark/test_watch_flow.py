"""A flow on real Spark, watched and steered over HTTP while it runs, and started again.

One test for all of it: queries end with their test.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.journal.entries import Event
from spillway.journal.files import read_journal
from spillway.watch.serving import opened_door, served
from spillway.watch.tokens import load_tokens

LONGEST_S = 240.0
FLOW = Flow.model_validate(
    {
        "streams": {
            "payments": {
                "source": "synthetic",
                "options": {"rate": 5000},
                "event_time": "event_time",
                "watermark": "5s",
            }
        },
        "classes": {"gold": {"priority": 2, "delay": "5s"}},
        "queries": {
            "fraud": {
                "class": "gold",
                "sink": {"type": "noop"},
                "sql": "SELECT key, value FROM payments WHERE value > 0.5",
            }
        },
    }
)


@dataclass
class Watching:
    client: httpx.Client
    folder: Folder

    @property
    def state(self) -> Any:
        return self.client.get("/api/state").json()

    def until(self, holds: Callable[[], bool]) -> None:
        ends_s = time.monotonic() + LONGEST_S
        while not holds():
            assert time.monotonic() < ends_s, self.client.get("/api/state").text
            time.sleep(0.5)


@pytest.fixture
def watching(spark: SparkSession, tmp_path: Path) -> Iterator[Watching]:
    folder = Folder(root=tmp_path)
    door = opened_door(folder.root, "127.0.0.1:0", None)
    assert door is not None
    application = Application(FLOW, spark, folder)
    with (
        served(application, "shop", door) as url,
        httpx.Client(base_url=url, timeout=60.0) as client,
    ):
        application.start()
        try:
            yield Watching(client=client, folder=folder)
        finally:
            application.stop()


def test_a_running_flow_is_watched_steered_and_remembers(
    watching: Watching, spark: SparkSession
) -> None:
    is_ready_when_every_query_has_finished_a_batch(watching)
    shows_what_prometheus_is_told(watching)
    is_set_obeyed_journalled_and_kept(watching, spark)
    assert "<html" in watching.client.get("/").text


def is_ready_when_every_query_has_finished_a_batch(watching: Watching) -> None:
    watching.until(lambda: watching.client.get("/readyz").status_code == 200)
    watching.until(lambda: watching.state["queries"][0]["totals"]["admitted"] > 10_000)
    [query] = watching.state["queries"]
    assert (query["name"], query["reads"], query["writes"]) == ("fraud", ["payments"], "noop")
    assert query["audit"]["verdict"] == "exact"
    assert query["batch"]["phases_s"]["addBatch"] > 0.0
    assert watching.state["classes"][0]["pace"]["delay_s"] > 0.0


def shows_what_prometheus_is_told(watching: Watching) -> None:
    watching.until(lambda: "admitted" in watching.client.get("/metrics").text)
    lines = watching.client.get("/metrics").text.splitlines()
    [rows] = [x for x in lines if x.startswith("spillway_rows_total") and 'e="admitted"' in x]
    [counted] = [x for x in lines if x.startswith("spillway_delay_seconds_count")]
    assert float(rows.split()[-1]) == pytest.approx(float(counted.split()[-1]), rel=0.01)
    history = watching.client.get("/api/history").json()["queries"]["fraud"]
    rates = [rate for rate in history["offered_per_s"] if rate is not None]
    assert sorted(rates)[len(rates) // 2] == pytest.approx(5000.0, rel=0.3)


def is_set_obeyed_journalled_and_kept(watching: Watching, spark: SparkSession) -> None:
    [token] = load_tokens(watching.folder.root / "tokens")
    headers = {"Authorization": f"Bearer {token.secret}"}
    done = watching.client.post("/api/set", headers=headers, json={"gold.delay": "p95 4s"})
    assert done.status_code == 200, done.text

    def obeyed() -> bool:
        found = watching.client.get("/api/decisions", params={"limit": 1}).json()
        return bool(found) and found[0]["target"] == "p95 4s"

    watching.until(obeyed)
    changes = [e for e in read_journal(watching.folder.journal) if isinstance(e, Event)]
    [change] = [event.fields for event in changes if event.kind == "changed"]
    assert (change["key"], change["to"], change["by"]) == ("gold.delay", "p95 4s", "operator")
    again = Application(FLOW, spark, watching.folder)
    try:
        assert str(again.target("gold")) == "p95 4s"
    finally:
        again.stop()

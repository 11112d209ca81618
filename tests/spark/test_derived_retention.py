"""A derived stream on real Spark whose folder stays small, over a restart."""

from pathlib import Path

import pytest
from gates import wait_until
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver import passed
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder, audits
from spillway.logs.sink_index import SinkIndex

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FLOW = Flow.model_validate(
    {
        "streams": {
            "events": {"source": "synthetic", "options": {"rate": 5_000}},
            "hot": {"from_sql": "SELECT key, value FROM events WHERE value > 0.5", "keep": "1s"},
        },
        "classes": {"gold": {"delay": "5s"}},
        "queries": {
            "all": {"class": "gold", "sink": {"type": "noop"}, "sql": "SELECT * FROM hot"},
            "few": {
                "class": "gold",
                "sink": {"type": "noop"},
                "sql": "SELECT * FROM hot WHERE value > 0.9",
            },
        },
    }
)


def run_until_more_is_deleted(spark: SparkSession, folder: Folder) -> int:
    hot = folder.root / "streams" / "hot"
    application = Application(FLOW, spark, folder)

    def first() -> int:
        index = SinkIndex(str(hot))
        index.refresh()
        return index.first

    def is_more() -> bool:
        application.supervise()
        return first() > before + 20_000

    before = first() if hot.exists() else 0
    application.start()
    try:
        wait_until(is_more, 240.0)
    finally:
        application.stop()
    return first()


def test_rows_that_every_query_has_read_go_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed, "LOOK_S", 1.0)
    folder = Folder(root=tmp_path)
    for _ in range(2):
        deleted = run_until_more_is_deleted(spark, folder)
    index = SinkIndex(str(tmp_path / "streams" / "hot"))
    index.refresh()
    there = {path.name for path in (tmp_path / "streams" / "hot").glob("*.parquet")}
    assert {Path(file.path).name for file in index.files(deleted, index.rows)} <= there
    for query in ("all", "few"):
        [audit] = audits(folder.ledger(query, "hot"), folder.checkpoint(query))
        assert audit.exact
        assert audit.totals.lost == 0
        assert audit.totals.offered > 40_000

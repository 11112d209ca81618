"""Quiet streams: final windows come out, and an idle side holds up no join."""

from pathlib import Path

import pytest
from gates import Place, gate, wait_until
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spillway.hosts.spark.driver.gates import with_watermark

pytestmark = pytest.mark.spark


def test_the_last_window_of_a_stream_that_went_quiet_comes_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = gate(
        spark,
        Place(root=tmp_path),
        rate="1000",
        tuples="3000",
        delay="1s",
        manager="none",
        heartbeat="event_time",
    )
    counts = (
        with_watermark(frame, "event_time", "500 milliseconds")
        .where("key >= 0")  # pushed below the watermark it would drop the heartbeats
        .groupBy(F.window("event_time", "1 second"))
        .agg(F.count("*").alias("tuples"))
    )
    query = counts.writeStream.format("memory").queryName("quiet").outputMode("append").start()

    def counted() -> int:
        row = spark.sql("SELECT sum(tuples) AS total FROM quiet").first()
        return 0 if row is None or row.total is None else int(row.total)

    wait_until(lambda: counted() == 3000)
    query.stop()
    assert counted() == 3000  # and no heartbeat was counted as a tuple


def test_a_silent_side_holds_up_no_join(spark: SparkSession, tmp_path: Path) -> None:
    def side(name: str, **options: str) -> object:
        frame = gate(
            spark,
            Place(root=tmp_path / name),
            columns=f"id{name} position, t{name} time",
            joint="join",
            heartbeat=f"t{name}",
            delay="1s",
            manager="none",
            **options,
        )
        return with_watermark(frame, f"t{name}", "1 second")

    busy, silent = side("a", rate="500"), side("b", tuples="0")
    condition = F.expr("ida = idb AND ta BETWEEN tb - INTERVAL 1 SECOND AND tb + INTERVAL 1 SECOND")
    joined = busy.join(silent, condition, "leftOuter")  # type: ignore[attr-defined]
    query = joined.writeStream.format("memory").queryName("joined").outputMode("append").start()

    def rows() -> int:
        return spark.sql("SELECT * FROM joined").count()

    wait_until(lambda: rows() > 500)  # only a moving watermark lets them out
    state = query.lastProgress["stateOperators"][0]["numRowsTotal"]
    query.stop()
    assert state < 10_000

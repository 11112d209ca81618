"""Sliding windows behind shedder `windows`: every result is true, and some go."""

from pathlib import Path

import numpy as np
import pytest
from flows import NO_DATA_BATCHES, START_S
from gates import Place, gate, wait_until
from pyspark.sql import SparkSession

from spillway.estimates.whole_windows import with_whole_windows
from spillway.gate.shedders.blocks import read_block
from spillway.gate.shedders.shedder import WholeWindows
from spillway.hosts.spark.driver.gates import with_watermark
from spillway.logs import catalog
from spillway.ports import Span

pytestmark = pytest.mark.spark

BLOCK_US, LENGTH_US, SLIDE_US = 1_000_000, 500_000, 250_000
TUPLES = 300_000  # 15 s
LOG = {
    "source": "synthetic",
    "rate": "20000",
    "columns": "id position, key key(5, 1.0), event_time time",
    "start": str(START_S),
    "tuples": str(TUPLES),
}
SQL = (
    "SELECT unix_micros(window.start) AS us, key, count(*) AS n FROM ticks"
    " GROUP BY window(event_time, '500 milliseconds', '250 milliseconds'), key"
)


def test_each_result_is_that_of_all_tuples(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(root=tmp_path)
    frame = gate(
        spark,
        place,
        **LOG,
        startingOffsets="earliest",
        heartbeat="event_time",
        manager="fixed",
        max_batch="60000",
        quiet="300ms",
        shedder="windows",
        window="1s",
        KEPT_FROM="true",  # options ignore case
        **{"manager.keep_fraction": "0.6"},
    )
    with_watermark(frame, "event_time", "0 seconds").createOrReplaceTempView("ticks")
    whole = WholeWindows(column="event_time", length_us=BLOCK_US)
    assert spark.conf.get(NO_DATA_BATCHES) == "false"
    query = (
        spark.sql(with_whole_windows("q", SQL, "ticks", whole))
        .writeStream.format("memory")
        .queryName("sliding")
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )
    wait_until(lambda: place.ledger.exists() and place.chain()[-1].heartbeat)
    query.stop()
    found = spark.table("sliding").toPandas()
    log = catalog.open_log(LOG, None)
    rows = read_block(log, Span(partition=0, start=0, stop=TUPLES)).to_pandas()
    slides = rows["event_time"].astype("int64") // SLIDE_US
    held = rows.groupby([slides, "key"]).size()
    for us, key, n in zip(found["us"], found["key"], found["n"], strict=True):
        first = int(us) // SLIDE_US
        assert n == held.get((first, key), 0) + held.get((first + 1, key), 0), (us, key)
    windows = np.unique(found["us"])
    over_border = windows[windows % BLOCK_US + LENGTH_US > BLOCK_US]
    assert len(over_border) > 0, "some reach over two stretches that both stayed"
    assert len(windows) < 0.9 * slides.nunique()
    assert place.audit().exact

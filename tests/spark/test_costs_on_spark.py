"""Masks and measured costs on real Spark."""

import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from gates import Place, wait_until
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.costs.by_stage import measure_stages
from spillway.costs.costs import cost_table, measure
from spillway.gate.masks import COLUMN, parse_shares, predicate
from spillway.gate.rules import seen_tuples

MASKS = "alerts:1000000,scores:250000"


def masked_rows(spark: SparkSession, place: Place, rate: int, **options: str) -> StreamingQuery:
    rows = (
        spark.readStream.format("spillway")
        .options(
            source="synthetic",
            delay="2s",
            rate=str(rate),
            columns="id position, value double(0, 1)",
        )
        .options(masks=MASKS, ledger=str(place.ledger), **options)
        .load()
    )
    return (
        rows.writeStream.format("parquet")
        .option("path", str(place.sink))
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


def test_every_query_sees_exactly_what_the_offsets_say(spark: SparkSession, place: Place) -> None:
    query = masked_rows(spark, place, 20_000, manager="fixed", **{"manager.keep_fraction": "0.4"})
    wait_until(lambda: len(query.recentProgress) >= 6)
    query.stop()
    expected = {share.name: 0 for share in parse_shares(MASKS)}
    for offset in place.chain():
        for name, count in seen_tuples(offset.stretches, offset.rule).items():
            expected[name] += count
    place.require_exact()
    delivered = spark.read.parquet(str(place.sink))
    for bit, share in enumerate(parse_shares(MASKS)):
        assert delivered.where(predicate(bit)).count() == expected[share.name]
    masks = pq.read_table(place.sink, columns=[COLUMN]).column(COLUMN).to_numpy()
    assert set(np.unique(masks).tolist()) == {1, 3}
    assert expected["scores"] == pytest.approx(0.25 * expected["alerts"], rel=0.02)


def test_measured_selectivity_is_that_of_the_filter_and_results_stay_the_same(
    spark: SparkSession,
) -> None:
    rows = (
        spark.readStream.format("spillway")
        .options(
            source="synthetic", delay="2s", rate="20000", columns="id position, value double(0, 1)"
        )
        .load()
        .where("value < 0.3")
    )
    query = rows.writeStream.format("memory").queryName("measured").start()
    time.sleep(1.0)
    costs = measure(query, batches=4)
    stages = measure_stages(spark, query)
    query.stop()
    [kept] = [cost for cost in costs if cost.name == "Filter"]
    assert kept.rows_in > 1000
    assert kept.selectivity == pytest.approx(0.3, abs=0.05)
    assert any(cost.cost_s is not None and cost.cost_s > 0.0 for cost in costs)
    assert max(stage.rows_in for stage in stages) > 1000
    assert all(0.0 <= stage.processor_s <= stage.task_s + 0.01 for stage in stages)
    assert len(cost_table(costs, "measured").rows) == len(costs)
    seen = spark.sql("SELECT count(*) AS n, max(value) AS top FROM measured").first()
    assert seen is not None
    assert seen["n"] >= kept.rows_out
    assert seen["top"] < 0.3

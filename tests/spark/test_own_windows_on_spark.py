"""A successor on real Spark: it begins where the origin stands, computes, and puts nothing out."""

import json
from functools import partial
from pathlib import Path

from gates import Place, gate, wait_for_batches, wait_until
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.flow.flow import Flow
from spillway.gate.offsets import encode
from spillway.handover import NOTHING_YET
from spillway.hosts.spark.driver.cuts import cut_of
from spillway.hosts.spark.driver.gates import with_watermark
from spillway.hosts.spark.driver.own_windows import own_results
from spillway.hosts.spark.files import last_batch
from spillway.hosts.spark.session.partitions import partitions_of_state
from spillway.sinks.catalog import BatchWise

SQL = """SELECT window(event_time, '1 second').start AS s, count(*) AS n FROM readings
         GROUP BY window(event_time, '1 second')"""
FLOW = Flow.model_validate(
    {
        "streams": {"readings": {"source": "synthetic", "event_time": "event_time"}},
        "classes": {"default": {"delay": "2s"}},
        "queries": {"counts": {"sql": SQL, "sink": {"type": "kafka", "brokers": "b:1"}}},
    }
)


def start(
    spark: SparkSession, place: Place, results: list[int], partitions: int, **options: str
) -> StreamingQuery:
    frame = gate(spark, place, rate="1000", manager="none", **options)
    with_watermark(frame, "event_time", "1 second").createOrReplaceTempView("readings")
    counts = spark.sql(cut_of("counts", FLOW.queries["counts"], FLOW).sql)

    def write(rows: DataFrame, batch_id: int) -> None:
        assert rows.columns == ["s", "n"]
        results.extend(row.n for row in rows.collect())

    writer = counts.writeStream.option("checkpointLocation", str(place.checkpoint))
    with partitions_of_state(spark, partitions):
        batchwise = BatchWise(writer, partial(own_results, place.checkpoint))
        started: StreamingQuery = batchwise.foreachBatch(write).start()
        return started


def test_a_successor_computes_and_puts_nothing_out(spark: SparkSession, tmp_path: Path) -> None:
    origin, there = Place(root=tmp_path / "origin"), Place(root=tmp_path / "there")
    results: list[int] = []
    query = start(spark, origin, results, partitions=1)
    wait_until(lambda: bool(results), timeout_s=120.0)
    query.stop()
    batch = last_batch(origin.checkpoint, completed=True)
    assert batch is not None
    [stood] = batch.gates()
    assert stood.owned is None

    silent: list[int] = []
    follows = json.dumps(encode(stood))
    query = start(spark, there, silent, partitions=3, follows=follows)
    wait_for_batches(query, 4)
    assert query.exception() is None
    query.stop()
    assert silent == []
    chain = there.chain()
    assert {offset.owned for offset in chain} == {NOTHING_YET}
    assert chain[0].stretches == stood.at_rest()
    assert there.audit().exact
    states = [f for f in (there.checkpoint / "state" / "0").iterdir() if f.name.isdecimal()]
    assert len(states) == 3

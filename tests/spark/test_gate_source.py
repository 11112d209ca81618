"""The gate in a real query: schema, account, triggers, stop and restart."""

import time
from pathlib import Path

import pytest
from gates import THIRD, Place, batches_done, gate, to_files, wait_for_batches, wait_until
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


def test_the_format_is_known_without_registration(spark: SparkSession, place: Place) -> None:
    frame = gate(spark, place, weight="true", arrival="true")
    assert frame.isStreaming
    assert frame.schema["_arrival"].dataType.simpleString() == "timestamp"
    assert frame.schema["_weight"].dataType.simpleString() == "double"


def test_under_overload_the_sink_holds_what_the_ledger_says(
    spark: SparkSession, place: Place
) -> None:
    options = {"rate": "400000", "partitions": "2", "weight": "true", "arrival": "true", **THIRD}
    frame = gate(spark, place, **options)
    query = to_files(frame, place)
    wait_until(lambda: batches_done(query) >= 12 and _arrived_s(place) >= 6.0)
    query.stop()
    result = place.require_exact()
    assert result.totals.shed > 0
    _require_weights_of_their_own_time(spark, place)
    assert sum(batch.unread_tuples for batch in place.chain()) == 0


def _arrived_s(place: Place) -> float:
    """The time from the first tuple to the last that batches hold."""
    times_us = [
        time_us
        for batch in place.chain()
        if batch.arrived is not None
        for time_us in (batch.arrived.first_us, batch.planned_us)
    ]
    return (max(times_us) - min(times_us)) / 1e6 if times_us else 0.0


def _require_weights_of_their_own_time(spark: SparkSession, place: Place) -> None:
    """Every second's rows weigh what arrived in it, whatever was kept of the others."""
    second = F.date_trunc("second", "_arrival").alias("second")
    weighed = spark.read.parquet(str(place.sink)).groupBy(second).agg(F.sum("_weight"))
    sums = [weight for _, weight in sorted(tuple(row) for row in weighed.collect())][1:-1]
    assert len(sums) >= 3
    assert sums == pytest.approx([400_000.0] * len(sums), rel=0.05)
    assert sum(sums) == pytest.approx(400_000.0 * len(sums), rel=0.01)


def test_after_a_pause_each_second_weighs_what_arrived_in_it(
    spark: SparkSession, place: Place
) -> None:
    options = {"rate": "400000", "partitions": "2", "weight": "true", "arrival": "true", **THIRD}
    options |= {"first_batch": "1000"}  # a reach of 50,000: what waits is far more
    for batches in (8, 24):
        query = to_files(gate(spark, place, **options), place)
        wait_for_batches(query, batches)
        query.stop()
        time.sleep(6.0)
    result = place.require_exact()
    assert result.totals.shed > 0
    _require_weights_of_their_own_time(spark, place)


def test_a_dry_run_drops_nothing_and_says_what_it_would_have_kept(
    spark: SparkSession, place: Place
) -> None:
    frame = gate(spark, place, rate="400000", dry_run="true", **THIRD)
    query = to_files(frame, place)
    wait_until(lambda: batches_done(query) >= 12)
    query.stop()
    assert place.require_exact().totals.shed == 0
    assert min(batch.rule.would_keep_ppm for batch in place.chain()) < 1_000_000


def test_a_query_that_is_stopped_and_started_goes_on_exactly(
    spark: SparkSession, place: Place
) -> None:
    for batches in (4, 9, 14):
        query = to_files(gate(spark, place, delay="300ms"), place)
        wait_for_batches(query, batches)
        query.stop()
    assert len(place.require_exact().batches) >= 14


def test_available_now_takes_all_that_was_there_and_sheds_nothing(
    spark: SparkSession, place: Place
) -> None:
    frame = gate(
        spark,
        place,
        rate="50000",
        start=str(time.time() - 10.0),
        startingOffsets="earliest",
        first_batch="100000",
    )
    query = (
        frame.writeStream.format("parquet")
        .trigger(availableNow=True)
        .option("path", str(place.sink))
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )
    assert query.awaitTermination(60)
    totals = place.require_exact().totals
    assert totals.shed == 0
    assert totals.admitted >= 500_000


def test_stop_interrupts_a_long_wait(spark: SparkSession, place: Place) -> None:
    query = to_files(gate(spark, place, tuples="0", poll="600s"), place)
    wait_until(lambda: batches_done(query) >= 0)
    time.sleep(0.5)
    before_s = time.monotonic()
    query.stop()
    assert time.monotonic() - before_s < 50.0


def test_a_column_of_another_type_is_named_before_a_batch_runs(
    spark: SparkSession, place: Place
) -> None:
    frame = (
        spark.readStream.format("spillway")
        .schema("id long, key string")
        .options(source="synthetic", delay="2s")
        .options(columns="id position, key key(10)")
        .load()
    )
    query = to_files(frame, place)
    with pytest.raises(StreamingQueryException, match="key"):
        query.awaitTermination(30)
    assert not list(place.checkpoint.glob("offsets/[0-9]*"))


def test_a_missing_arrival_column_is_no_fault(spark: SparkSession, place: Place) -> None:
    frame = (
        spark.readStream.format("spillway")
        .schema("id long")
        .options(
            source="synthetic",
            delay="2s",
            columns="id position, x double",
            ledger=str(place.ledger),
        )
        .load()
    )
    query = to_files(frame, place)
    wait_until(lambda: batches_done(query) >= 2)
    query.stop()
    place.require_exact()


def test_late_progress_tracking_is_refused(spark: SparkSession, place: Place) -> None:
    query = (
        gate(spark, place)
        .writeStream.format("noop")
        .option("asyncProgressTrackingEnabled", "true")
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )
    with pytest.raises(StreamingQueryException, match="asyncProgressTrackingEnabled"):
        query.awaitTermination(60)


def test_the_ledger_outlives_sparks_own_log(spark: SparkSession, place: Place) -> None:
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "5")
    try:
        query = to_files(gate(spark, place, delay="300ms"), place)
        wait_until(lambda: batches_done(query) >= 25)
        query.stop()
    finally:
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    assert not (place.checkpoint / "offsets" / "0").exists()
    assert len(place.require_exact().batches) >= 25

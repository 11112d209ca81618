"""What a gate on Spark does when something beside it fails: the log, the disk, the trigger."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from drivers import PLANNER, offsets, processes, start_driver, stop_driver, wait_for_offset
from gates import THIRD, Place, batches_done, gate, to_files, wait_until
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.hosts.spark.files import logged_batches

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


@contextmanager
def full_disk(process: psutil.Process, file: Path) -> Iterator[None]:
    """No file of the process may grow beyond what this one has: the disk is full for it."""
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    size = file.stat().st_size + 10  # and a line is torn
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)


def on_ticks(frame: DataFrame, place: Place, interval: str) -> StreamingQuery:
    return (
        frame.writeStream.format("parquet")
        .trigger(processingTime=interval)
        .option("path", str(place.sink))
        .option("checkpointLocation", str(place.checkpoint))
        .start()
    )


def test_a_full_disk_under_the_ledger_stops_nothing_and_loses_no_line(
    spark: SparkSession, place: Place
) -> None:
    query = to_files(gate(spark, place, delay="300ms"), place)
    wait_until(lambda: batches_done(query) >= 3)
    [planner] = processes(PLANNER)
    with full_disk(planner, place.ledger):
        time.sleep(0.5)
        size, done = place.ledger.stat().st_size, batches_done(query)
        wait_until(lambda: batches_done(query) >= done + 4)
        assert place.ledger.stat().st_size == size
        assert place.ledger.read_text().endswith("\n"), "no line is torn"
    done = batches_done(query)
    wait_until(lambda: batches_done(query) >= done + 2)
    query.stop()
    before = len(place.ledger.read_text().splitlines())
    assert before >= done, "what waited has been written"
    place.require_exact()


def test_behind_a_trigger_interval_a_batch_is_timed_by_its_commit(
    spark: SparkSession, place: Place
) -> None:
    options = {"trigger": "4s", "checkpoint": str(place.checkpoint), "delay": "16s"}
    query = on_ticks(gate(spark, place, **options), place, "4 seconds")
    wait_until(lambda: batches_done(query) >= 6)
    query.stop()
    audit = place.require_exact()
    assert audit.totals.shed == 0
    prices = place.chain()[-1].prices
    assert prices is not None
    assert 0.0 < prices.fixed_s + prices.kept_s * 80_000 < 3.6, "the tick is not the batch"


@pytest.mark.chaos
def test_an_interval_that_nobody_mentioned_ends_nothing(spark: SparkSession, place: Place) -> None:
    query = on_ticks(gate(spark, place, delay="4s"), place, "500 milliseconds")
    wait_until(lambda: batches_done(query) >= 15)
    assert query.isActive
    query.stop()
    place.require_exact()


@pytest.mark.chaos
def test_the_ledger_agrees_with_sparks_log_where_that_still_exists(
    spark: SparkSession, place: Place
) -> None:
    query = to_files(gate(spark, place, rate="100000", delay="150ms", partitions="2"), place)
    wait_until(lambda: batches_done(query) >= 230, 240.0)
    query.stop()
    logged = logged_batches(place.checkpoint)
    assert logged[0].batch_id > 0, "Spark has purged"
    assert len(logged) >= 100, "and kept its hundred"
    audit = place.require_exact()
    assert len(audit.batches) >= 230
    assert audit.problems == ()


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_full_disk_under_the_checkpoint_ends_the_query_and_a_restart_is_exact(
    tmp_path: Path,
) -> None:
    """Spark cannot write down the next batch: so it must not run, and the one before it stays."""
    place = Place(root=tmp_path)
    options = {"rate": "100000", "delay": "400ms", **THIRD}
    driver = start_driver(place, options)
    wait_for_offset(place, 5, driver)
    [jvm] = [p for p in processes("java", psutil.Process(driver.pid)) if p.name() == "java"]
    resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    assert driver.wait(120) != 0, "what cannot be logged does not run"
    kill_leftovers(jvm)
    again = start_driver(place, options)
    wait_for_offset(place, offsets(place) + 5, again)
    stop_driver(place, again)
    assert place.require_exact().totals.shed > 0


def kill_leftovers(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
        process.wait(60)

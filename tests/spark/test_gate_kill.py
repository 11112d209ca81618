"""SIGKILL at random moments: what the sink holds and what the ledger says stay the same.

SPILLWAY_KILLS sets how often drivers are killed (`make chaos`: 100, of which these are a part).
"""

import random
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from drivers import (
    PLANNER,
    in_flight,
    kill_tree,
    offsets,
    processes,
    start_driver,
    stop_driver,
    wait_for_offset,
)
from gates import THIRD, Place, batches_done, gate, to_files, wait_for_batches, wait_until
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tally import count, kills

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = kills("generated", otherwise=3)
OVERLOAD = {"rate": "200000", "delay": "400ms", "partitions": "2", **THIRD}


def test_a_killed_driver_loses_and_doubles_nothing(tmp_path: Path) -> None:
    place, generator, replayed = Place(root=tmp_path), random.Random(KILLS), 0
    for number in range(KILLS):
        driver = start_driver(place, OVERLOAD)
        wait_for_offset(place, offsets(place) + 1 + generator.randrange(1, 6), driver)
        if number % 3:  # every third kill hits between the planning and the first task
            time.sleep(generator.uniform(0.0, 0.6))
        kill_tree(driver)
        replayed += in_flight(place)
    driver = start_driver(place, OVERLOAD)
    wait_for_offset(place, offsets(place) + 6, driver)
    stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.shed > 0
    assert len(result.batches) > 3 * KILLS
    count(killed=KILLS, replayed=replayed, compared=result.totals.admitted)


def test_a_killed_python_worker_is_survived(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(root=tmp_path)
    query = to_files(gate(spark, place, delay="400ms"), place)
    wait_until(lambda: batches_done(query) >= 2)
    for _ in range(3):
        for daemon in processes("pyspark.daemon"):
            with suppress(psutil.NoSuchProcess):
                for worker in daemon.children():
                    worker.kill()
        wait_for_batches(query, batches_done(query) + 2)
    query.stop()
    place.require_exact()


def test_a_killed_planner_ends_the_query_and_a_restart_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(root=tmp_path)
    query = to_files(gate(spark, place, delay="400ms"), place)
    wait_until(lambda: batches_done(query) >= 3)
    [planner] = processes(PLANNER)
    planner.kill()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(30)
    again = to_files(gate(spark, place, delay="400ms"), place)
    wait_until(lambda: batches_done(again) >= batches_done(query) + 4)
    again.stop()
    assert len(place.require_exact().batches) >= 7

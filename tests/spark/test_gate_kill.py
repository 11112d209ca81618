"""SIGKILL at random moments: what the sink holds and what the ledger says stay the same.

SPILLWAY_KILLS sets how often the driver is killed (`make chaos`: 24).
"""

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from gates import Place, batches_done, gate, to_files, wait_until
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("SPILLWAY_KILLS", "3"))
DRIVER = Path(__file__).with_name("gate_driver.py")
PLANNER = "python_streaming_source_runner"


def start_driver(root: Path) -> subprocess.Popen[bytes]:
    with (root / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), str(root), "200000"], stdout=log, stderr=log
        )


def offsets(place: Place) -> int:
    folder = place.checkpoint / "offsets"
    names = [f.name for f in folder.iterdir() if f.name.isdigit()] if folder.exists() else []
    return max(map(int, names), default=-1)


def kill_tree(driver: subprocess.Popen[bytes]) -> None:
    """The JVM first: it is the one that plans, logs and commits."""
    parent = psutil.Process(driver.pid)
    for process in [*parent.children(recursive=True), parent]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    driver.wait()


def wait_for_offset(place: Place, number: int, driver: subprocess.Popen[bytes]) -> None:
    """Until batch `number` is in Spark's log, looking every millisecond."""
    deadline_s = time.monotonic() + 120.0
    while offsets(place) < number:
        assert driver.poll() is None, (place.root / "driver.log").read_text()[-2000:]
        assert time.monotonic() < deadline_s, "the driver makes no batches"
        time.sleep(0.001)


def test_a_killed_driver_loses_and_doubles_nothing(tmp_path: Path) -> None:
    place, generator = Place(root=tmp_path), random.Random(KILLS)
    for number in range(KILLS):
        driver = start_driver(tmp_path)
        wait_for_offset(place, offsets(place) + 1 + generator.randrange(1, 6), driver)
        if number % 3:  # every third kill hits between the planning and the first task
            time.sleep(generator.uniform(0.0, 0.6))
        kill_tree(driver)
    driver = start_driver(tmp_path)
    wait_for_offset(place, offsets(place) + 6, driver)
    (tmp_path / "stop").touch()
    assert driver.wait(60) == 0
    result = place.require_exact()
    assert result.totals.shed > 0
    assert len(result.batches) > 3 * KILLS


def processes(marker: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if marker in " ".join(process.cmdline()):
                found.append(process)
    return found


def test_a_killed_python_worker_is_survived(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(root=tmp_path)
    query = to_files(gate(spark, place, delay="400ms"), place)
    wait_until(lambda: batches_done(query) >= 2)
    for _ in range(3):
        for daemon in processes("pyspark.daemon"):
            with suppress(psutil.NoSuchProcess):
                for worker in daemon.children():
                    worker.kill()
        seen = batches_done(query)
        wait_until(lambda at=seen: batches_done(query) >= at + 2)
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

"""Drivers killed while the native reader reads: nothing is lost, nothing comes twice."""

import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from drivers import kill_tree, offsets, processes, start_driver, stop_driver, wait_for_offset
from gates import THIRD, Place
from topics import Topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
pytest.importorskip("spillway_native", reason="no native reader: run make native")

WORKERS = "pyspark.daemon"


def native_readers(driver: Any) -> list[psutil.Process]:
    """Workers that have the native reader's code in memory."""
    found = []
    for process in processes(WORKERS, psutil.Process(driver.pid)):
        with suppress(psutil.Error):
            if any("spillway_native" in part.path for part in process.memory_maps()):
                found.append(process)
    return found


def test_kills_lose_and_double_nothing(kafka_broker: Any, tmp_path: Path) -> None:
    topic, place, rng = Topic(kafka_broker, "native-kills"), Place(root=tmp_path), random.Random(4)
    options = {**topic.options, "delay": "400ms", "reader": "native", **THIRD}
    readers = 0
    with topic.producing(20_000):
        for _ in range(2):
            driver = start_driver(place, options)
            wait_for_offset(place, offsets(place) + 4, driver)
            readers += len(native_readers(driver))
            time.sleep(rng.uniform(0.0, 0.5))
            kill_tree(driver)
        driver = start_driver(place, options)
        wait_for_offset(place, offsets(place) + 5, driver)
        stop_driver(place, driver)
    result = place.require_exact()
    assert readers > 0
    assert result.totals.shed > 0
    assert result.totals.lost == 0

"""Long runs on a real broker: drivers that are killed, clocks that jump."""

import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from drivers import (
    in_flight,
    kill_tree,
    offsets,
    processes,
    start_driver,
    stop_driver,
    wait_for_offset,
)
from gates import THIRD, Place
from tally import count, kills
from topics import Topic

from spillway_lab.benchmarks.standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.timeout(1200)]

KILLS = kills("kafka", otherwise=1)
EXECUTORS = 3  # lost, one after the other
EXECUTOR = "CoarseGrainedExecutorBackend"
SKEWED = Path(__file__).with_name("skewed_clock")
HOUR_S = 3600.0
FROZEN_S = 60.0  # a session of Kafka's group protocol ends after 45 s without a sign


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


def test_a_driver_killed_on_kafka_loses_and_doubles_nothing(
    kafka_broker: Any, place: Place
) -> None:
    topic, generator, replayed = Topic(kafka_broker, "killed"), random.Random(KILLS), 0
    options = {**topic.options, "delay": "400ms", **THIRD}
    with topic.producing(40_000):
        for number in range(KILLS):
            driver = start_driver(place, options)
            wait_for_offset(place, offsets(place) + 1 + generator.randrange(1, 6), driver)
            if number % 3:  # every third kill hits between the planning and the first task
                time.sleep(generator.uniform(0.0, 0.6))
            kill_tree(driver)
            replayed += in_flight(place)
        driver = start_driver(place, options)
        wait_for_offset(place, offsets(place) + 6, driver)
        stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.shed > 0
    assert result.totals.lost == 0
    count(killed=KILLS, replayed=replayed, compared=result.totals.admitted)


def test_a_broker_that_stops_in_the_middle_of_a_batch_costs_nothing_but_time(
    kafka_broker: Any, place: Place
) -> None:
    topic = Topic(kafka_broker, "stopping")
    options = {**topic.options, "delay": "400ms", "outage_timeout": "120s", **THIRD}
    driver = start_driver(place, options)
    for _ in range(3):
        topic.produce(200_000)
        wait_for_offset(place, offsets(place) + 2, driver)
        kafka_broker.stop()
        time.sleep(5.0)
        kafka_broker.start()
        topic.produce(20_000)
        wait_for_offset(place, offsets(place) + 2, driver)
    stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.lost == 0
    count(killed=0, replayed=0, compared=result.totals.admitted)


def test_executors_of_a_cluster_that_are_lost_lose_and_double_nothing(
    kafka_broker: Any, place: Place
) -> None:
    """In the middle of a batch, with the consumers and the rows that it held."""
    topic, generator = Topic(kafka_broker, "executors"), random.Random(3)
    (place.root / "cluster").mkdir()
    with standalone(2, place.root / "cluster") as address, topic.producing(20_000):
        options = {**topic.options, "delay": "1s", **THIRD}
        driver = start_driver(place, options, {"SPILLWAY_TEST_MASTER": address})
        for _ in range(EXECUTORS):
            wait_for_offset(place, offsets(place) + 4, driver)
            time.sleep(generator.uniform(0.0, 0.5))
            generator.choice(processes(EXECUTOR)).kill()
        wait_for_offset(place, offsets(place) + 6, driver)
        stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.shed > 0
    assert result.totals.lost == 0
    count(killed=EXECUTORS, replayed=0, compared=result.totals.admitted)


def test_a_driver_that_is_frozen_for_longer_than_a_session_goes_on(
    kafka_broker: Any, place: Place
) -> None:
    topic = Topic(kafka_broker, "frozen")
    driver = start_driver(place, {**topic.options, "delay": "400ms", **THIRD})
    with topic.producing(20_000):
        wait_for_offset(place, offsets(place) + 5, driver)
        whole = [psutil.Process(driver.pid), *processes("", psutil.Process(driver.pid))]
        for process in whole:
            process.suspend()
        time.sleep(FROZEN_S)
        for process in whole:
            process.resume()
        wait_for_offset(place, offsets(place) + 5, driver)
    stop_driver(place, driver)
    result = place.require_exact()
    assert result.totals.lost == 0
    count(killed=0, replayed=0, compared=result.totals.admitted)


def test_a_clock_that_jumps_back_and_ahead_stops_nothing_and_loses_nothing_uncounted(
    kafka_broker: Any, place: Place
) -> None:
    topic, clock = Topic(kafka_broker, "jumping"), place.root / "clock"
    clock.write_text("0")
    environment = {"PYTHONPATH": str(SKEWED), "SPILLWAY_TEST_CLOCK": str(clock)}
    with topic.producing(20_000):
        driver = start_driver(place, {**topic.options, "delay": "500ms"}, environment)
        for off_by_s in (-HOUR_S, HOUR_S, 0.0):
            wait_for_offset(place, offsets(place) + 8, driver)
            clock.write_text(str(off_by_s))
        wait_for_offset(place, offsets(place) + 8, driver)
        stop_driver(place, driver)
    result = place.require_exact()
    planned_s = [batch.planned_us / 1e6 for batch in result.batches]
    jumps_s = [b - a for a, b in pairwise(planned_s) if abs(b - a) > 600]
    assert [round(jump / HOUR_S) for jump in jumps_s] == [-1, 2, -1], "the clock was injected"
    cut = [batch.seq for batch in result.batches if batch.shed]
    kept = result.totals.admitted / (result.totals.admitted + result.totals.shed)
    print(f"kept {kept:.1%}; batches with shed tuples: {cut} of {len(result.batches)}")
    assert all(batch.admitted > 0 for batch in result.batches[-3:])

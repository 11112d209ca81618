"""Loads that a machine carries with ease, and of which the gate shed: nothing may go.

What made it shed was a cold JVM, a fixed price above the target, a start with a price that an
earlier run had learned, a pause, a burst, a trigger's interval, others that held the machine.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from spillway.testing import BurstLog, ToyLog
from toy_queries import Machine, ToyQuery, warming

COLD = warming(10.0, 60.0)
WINDOWED = Machine(fixed_s=0.45, kept_s=9e-6)  # of a windowed aggregate behind Kafka
GENERATED = Machine(fixed_s=0.25, kept_s=1.5e-7, scanned_s=1e-8)  # of `spillway demo`


def query(folder: Path, machine: Machine, *logs: ToyLog, **options: str) -> ToyQuery:
    named = {f"s{number}": log for number, log in enumerate(logs)}
    return ToyQuery(machine=machine, logs=named, folder=folder, options={"delay": "2s"} | options)


def assert_all_of_it_came(ran: ToyQuery, within_s: float = 5.0) -> None:
    """Nothing was shed, and nothing is held back for ever either."""
    assert ran.shed == 0
    assert ran.waits_s < within_s


@pytest.mark.parametrize("rate_per_s", [500.0, 2_000.0, 20_000.0])
def test_a_cold_start_at_a_low_rate(tmp_path: Path, rate_per_s: float) -> None:
    ran = query(tmp_path, replace(WINDOWED, noise=0.08, cold=COLD), ToyLog(rate_per_s=rate_per_s))
    ran.run(180.0)
    assert_all_of_it_came(ran)


@pytest.mark.parametrize("fixed_s", [3.0, 6.0])
def test_a_fixed_price_above_the_target(tmp_path: Path, fixed_s: float) -> None:
    """As with 200 shuffle partitions: no shedding would ever meet the target."""
    machine = Machine(fixed_s=fixed_s, kept_s=9e-6, noise=0.08, cold=warming(3.0, 60.0))
    ran = query(tmp_path, machine, ToyLog(rate_per_s=2_000.0))
    ran.run(180.0)
    assert_all_of_it_came(ran, within_s=3.0 * fixed_s)


@pytest.mark.parametrize("rate_per_s", [2_000.0, 200_000.0])
@pytest.mark.parametrize("down_s", [20.0, 30.0, 90.0])
def test_stop_and_start_with_a_price_that_was_learned(
    tmp_path: Path, rate_per_s: float, down_s: float
) -> None:
    prices = WINDOWED if rate_per_s < 10_000.0 else GENERATED
    ran = query(tmp_path, replace(prices, noise=0.05, cold=COLD), ToyLog(rate_per_s=rate_per_s))
    ran.run(50.0)
    ran.stop(for_s=down_s)
    ran.run(300.0)
    assert_all_of_it_came(ran)


def test_a_driver_killed_within_a_batch(tmp_path: Path) -> None:
    ran = query(tmp_path, replace(WINDOWED, noise=0.05, cold=COLD), ToyLog(rate_per_s=2_000.0))
    ran.run(50.0)
    ran.kill(for_s=15.0)
    ran.run(240.0)
    assert_all_of_it_came(ran)


@pytest.mark.parametrize("rate_per_s", [2_000.0, 200_000.0])
def test_a_pause_of_half_a_minute(tmp_path: Path, rate_per_s: float) -> None:
    ran = query(tmp_path, replace(GENERATED, noise=0.05), ToyLog(rate_per_s=rate_per_s))
    ran.run(60.0)
    ran.pause(30.0)
    ran.run(180.0)
    assert_all_of_it_came(ran)


@pytest.mark.parametrize("burst_per_s", [80_000.0, 130_000.0])
def test_a_burst_within_capacity(tmp_path: Path, burst_per_s: float) -> None:
    """2.5 us a tuple behind Kafka, of which 130,000/s take a third of the machine."""
    machine = Machine(fixed_s=0.3, kept_s=2.5e-6, noise=0.08, cold=warming(6.0, 30.0))
    log = BurstLog(rate_per_s=2_000.0, burst_per_s=burst_per_s, burst_at_s=40.0)
    ran = query(tmp_path, machine, log)
    ran.run(120.0)
    assert ran.shed == 0
    assert ran.done[-1].delay_s < 2.0


def test_a_start_at_half_a_million_a_second(tmp_path: Path) -> None:
    machine = replace(GENERATED, noise=0.05, cold=warming(16.0, 20.0))
    ran = query(tmp_path, machine, ToyLog(rate_per_s=500_000.0))
    ran.run(120.0)
    assert_all_of_it_came(ran)


@pytest.mark.parametrize("cold", [1.0, 10.0])
def test_two_gates_of_a_join(tmp_path: Path, cold: float) -> None:
    machine = Machine(fixed_s=0.8, kept_s=2e-5, noise=0.08, cold=warming(cold, 60.0))
    ran = query(tmp_path, machine, ToyLog(rate_per_s=1_000.0), ToyLog(rate_per_s=1_000.0))
    ran.run(150.0)
    assert_all_of_it_came(ran)


def test_a_join_stopped_and_started(tmp_path: Path) -> None:
    machine = Machine(fixed_s=0.8, kept_s=2e-5, noise=0.08, cold=COLD)
    ran = query(tmp_path, machine, ToyLog(rate_per_s=1_000.0), ToyLog(rate_per_s=5_000.0))
    ran.run(60.0)
    ran.stop(for_s=20.0)
    ran.run(300.0)
    assert_all_of_it_came(ran)


@pytest.mark.parametrize("times", [5.0, 12.0])
def test_others_hold_the_machine_for_some_seconds(tmp_path: Path, times: float) -> None:
    """A light query whose batches take five times as long, for 8 of every 25 s."""
    machine = Machine(
        fixed_s=0.3,
        kept_s=9e-6,
        noise=0.08,
        crowded=lambda time_s: times if time_s % 25.0 < 8.0 else 1.0,
    )
    ran = query(tmp_path, machine, ToyLog(rate_per_s=4_000.0))
    ran.run(200.0)
    assert_all_of_it_came(ran, within_s=15.0)


@pytest.mark.parametrize("streams", [1, 2])
def test_a_light_query_that_has_to_wait_for_its_turn(tmp_path: Path, streams: int) -> None:
    """Others hold the machine's slots for 8 of every 10 s, and for all of the first 20."""
    logs = [ToyLog(rate_per_s=5_000.0) for _ in range(streams)]
    machine = Machine(fixed_s=0.6, kept_s=5e-6, noise=0.05, cold=warming(8.0, 30.0))
    ran = query(tmp_path, machine, *logs, delay="4s")
    ran.turn = lambda time_s: time_s > 20.0 and time_s % 10.0 >= 8.0
    ran.stop(for_s=0.1)  # planners ask from their making on
    ran.run(120.0)
    assert_all_of_it_came(ran, within_s=12.0)


def test_a_trigger_interval_above_the_target(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    machine = replace(WINDOWED, noise=0.05, cold=warming(8.0, 30.0))
    ran = query(tmp_path, machine, ToyLog(rate_per_s=500.0), trigger="5s", checkpoint=checkpoint)
    ran.trigger_s = 5.0
    ran.run(150.0)
    assert_all_of_it_came(ran, within_s=12.0)

"""Tasks and costs of a gate follow the cores."""

import os
import tempfile
from pathlib import Path

import pytest

from spillway.clock import ManualClock
from spillway.gate.options import GateOptions
from spillway.hosts.spark.cores import tell_cores
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.hosts.spark.planner.sizing import Cores
from spillway.logs import catalog
from spillway.model import Order, Report
from spillway.testing import ToyLog, ToySpark


@pytest.fixture
def factors() -> list[float]:
    return []


def test_tasks_follow_and_so_does_what_was_learned_on_other_cores(factors: list[float]) -> None:
    cores = Cores({}, 32, factors.append)
    for tasks in (2, 2, None, 6, 3):
        cores.told(tasks)
    assert cores.tasks == 3
    assert factors == [3.0, 0.5]  # what was learned first belongs to the first two


def test_a_number_of_tasks_that_the_user_gave_stays(factors: list[float]) -> None:
    cores = Cores({"parallelism": "16"}, 16, factors.append)
    cores.told(2)
    cores.told(6)
    assert cores.tasks == 16
    assert factors == [3.0]


def test_a_gate_that_no_driver_answers_looks_for_what_was_written_down(
    factors: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cores = Cores({}, 32, factors.append)
    cores.look()
    assert cores.tasks == 32
    tell_cores(os.getppid(), 4)
    cores.look()
    assert cores.tasks == 4


def test_a_gate_cuts_and_prices_its_next_batch_for_the_cores_that_its_driver_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = ToyLog()
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: log)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    cores, clock = [2], ManualClock(1000.0)
    given = {"source": "toy", "delay": "2s", "channel": "none"}
    gate = GateOptions.parse(given)

    def ask(report: Report) -> Order:
        return Order(target=gate.target, parallelism=cores[0])

    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask)
    planner = Planner(given, gate, around=around)
    spark = ToySpark(planner=planner, clock=clock)
    spark.batches(20)
    before = planner._gate.prices
    assert before is not None
    assert planner.cores.tasks == 2
    cores[0] = 6
    spark.plan()
    after = planner._gate.prices
    assert after is not None
    assert planner.cores.tasks == 6
    assert after.kept_s == pytest.approx(before.kept_s / 3.0, rel=0.1)
    assert after.fixed_s == pytest.approx(before.fixed_s, rel=0.1)

"""Tasks and costs of a gate follow the cores."""

import os
import tempfile
from pathlib import Path

import pytest

from spillway.hosts.spark.cores import tell_cores
from spillway.hosts.spark.planner.sizing import Cores


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

"""The file by which a driver tells gates without a channel how many cores there are."""

import os
import tempfile
from pathlib import Path

import pytest

from spillway.hosts.spark.cores import cores_told, forget_cores, tell_cores, tellers


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_process_below_finds_what_was_told_until_it_is_forgotten() -> None:
    assert cores_told(tellers()) is None
    tell_cores(os.getppid(), 3)
    assert cores_told(tellers()) == 3
    tell_cores(os.getppid(), 5)
    assert cores_told(tellers()) == 5
    forget_cores(os.getppid())
    assert cores_told(tellers()) is None


def test_what_is_told_of_another_application_is_not_heard() -> None:
    tell_cores(os.getpid(), 7)
    assert cores_told(tellers()) is None


def test_nobody_else_may_read_or_write_it(tmp_path: Path) -> None:
    tell_cores(os.getppid(), 3)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0

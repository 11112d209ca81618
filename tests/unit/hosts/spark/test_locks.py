"""Locks of folders and ledgers between real processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.spark.locks import Lock, driver_of_planner, this_process

HOLDS = """
import sys
from pathlib import Path
from spillway.hosts.spark.locks import Lock
lock = Lock(path=Path(sys.argv[1]), what="it", fix="wait", owner=sys.argv[2],
            shared=sys.argv[3] == "shared")
lock.take()
print("held", flush=True)
sys.stdin.read()
"""


def lock(path: Path, owner: str = "me", *, shared: bool = False) -> Lock:
    return Lock(path=path, what="it", fix="wait", owner=owner, shared=shared)


@contextmanager
def other_process(path: Path, owner: str, kind: str) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", HOLDS, str(path), owner, kind]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("kind", ["shared", "alone"])
def test_the_second_one_is_refused_and_death_releases(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "made" / "lock"
    mine = lock(path, shared=kind == "shared")
    with other_process(path, "another", kind) as process:
        with pytest.raises(SpillwayError, match=r"^it is in use by another: wait$"):
            mine.take()
        process.kill()
        process.wait()
        mine.take()
    with pytest.raises(SpillwayError, match="in use by me"):
        lock(path, "third", shared=kind == "shared").take()


def test_a_shared_lock_is_shared_by_one_owner(tmp_path: Path) -> None:
    with other_process(tmp_path / "lock", "me", "shared"):
        mine = lock(tmp_path / "lock", shared=True)
        mine.take()
    with pytest.raises(SpillwayError, match="in use by me"):
        lock(tmp_path / "lock", "you", shared=True).take()
    mine.release()
    lock(tmp_path / "lock", "you", shared=True).take()


def test_a_lock_that_is_not_shared_excludes_its_own_process(tmp_path: Path) -> None:
    mine = lock(tmp_path / "lock")
    mine.take()
    mine.take()
    with pytest.raises(SpillwayError):
        lock(tmp_path / "lock").take()


def test_it_waits_for_one_that_is_dying(tmp_path: Path) -> None:
    first, second = lock(tmp_path / "lock", "old"), lock(tmp_path / "lock", "new")
    first.take()
    timer = threading.Timer(0.2, first.release)
    timer.start()
    second.take(wait_s=60.0)
    timer.join()


def test_a_disk_that_refuses_the_file_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where a folder should be")
    mine = lock(tmp_path / "blocked" / "lock")
    mine.take()
    (tmp_path / "blocked").unlink()
    mine.take()
    with pytest.raises(SpillwayError):
        lock(tmp_path / "blocked" / "lock").take()


def test_owners_are_told_apart_by_their_process_and_its_start() -> None:
    assert f"process {os.getpid()} on" in this_process()
    assert f"process {os.getppid()} on" in driver_of_planner()
    assert "started at tick" in this_process()

"""Driver processes that tests kill, and where they are by then."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from gates import Place

PLANNER = "python_streaming_source_runner"
DRIVER = Path(__file__).with_name("gate_driver.py")


def start_driver(
    place: Place, options: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    with (place.root / "driver.log").open("ab") as log:
        command = [sys.executable, str(DRIVER), str(place.root), json.dumps(options)]
        given = {**os.environ, **(environment or {})}
        return subprocess.Popen(command, stdout=log, stderr=log, env=given)


def stop_driver(place: Place, driver: subprocess.Popen[bytes]) -> None:
    """Ends the query between two batches, as a user would."""
    (place.root / "stop").touch()
    assert driver.wait(60) == 0


def kill_tree(driver: subprocess.Popen[bytes]) -> None:
    """The JVM first: it is the one that plans, logs and commits."""
    parent = psutil.Process(driver.pid)
    for process in [*parent.children(recursive=True), parent]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    driver.wait()


def offsets(place: Place) -> int:
    """The last batch in Spark's offset log."""
    folder = place.checkpoint / "offsets"
    names = [f.name for f in folder.iterdir() if f.name.isdigit()] if folder.exists() else []
    return max(map(int, names), default=-1)


def in_flight(place: Place) -> bool:
    """Is its newest batch planned, and not done? Then it is run again after a kill."""
    return not (place.checkpoint / "commits" / str(offsets(place))).exists()


def wait_for_offset(place: Place, number: int, driver: subprocess.Popen[bytes]) -> None:
    """Until batch `number` is in Spark's log, looking every millisecond."""
    deadline_s = time.monotonic() + 300.0
    while offsets(place) < number:
        assert driver.poll() is None, (place.root / "driver.log").read_text()[-2000:]
        assert time.monotonic() < deadline_s, "the driver makes no batches"
        time.sleep(0.001)


def processes(marker: str, of: psutil.Process | None = None) -> list[psutil.Process]:
    """Descendants of a process, or of this one, with the marker on their command line."""
    found = []
    for process in (of or psutil.Process()).children(recursive=True):
        with suppress(psutil.Error):  # it may just have ended
            if marker in " ".join(process.cmdline()):
                found.append(process)
    return found

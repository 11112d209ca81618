"""A cluster of two nodes for a benchmark, and plain Spark beside it: both write kept results."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from spillway.check.flow_file import load_as_written
from spillway.errors import SpillwayError
from spillway.hosts.cluster.opening import place_of
from spillway.hosts.cluster.status import Status
from spillway_lab.benchmarks.kept_results import FOLDER, KEEP

RATE = 200  # tuples per second
WINDOW_S = 1
QUERY = "counts"
BY_WINDOW = "FROM readings GROUP BY window(event_time, '1 second')"
SQL = f"SELECT unix_micros(window.start) AS start_us, count(*) AS n {BY_WINDOW}"
OTHER_SQL = (
    f"SELECT unix_micros(window.start) AS start_us, count(*) AS n, max(id) AS newest {BY_WINDOW}"
)
FLOW = f"""\
streams:
  readings:
    source: synthetic
    options: {{{{rate: {RATE}, columns: "id position, event_time time"}}}}
    event_time: event_time
    watermark: 1s
classes:
  default: {{{{delay: 2s, manager: none}}}}
queries:
  {QUERY}:
    sink: {{{{type: python, call: '{KEEP}', generations: true}}}}
    sql: {SQL}
cluster:
  folder: {{root}}/run
  fewest: 2
  most: 2
  lease: 8s
  upper: 100
  target: 90
  cooldown: 10m
spark:
  config: {{{{spark.driver.memory: 700m}}}}
"""
START_S = 240.0
DELIVERS = ("running", "catching up")
_SPILLWAY = (sys.executable, "-m", "spillway.cli.app")


class Cluster:
    """Its processes end with it."""

    def __init__(self, root: Path) -> None:
        self.root, self.file = root, root / "migrate.yaml"
        self.file.write_text(FLOW.format(root=root))
        self.results = root / "results"
        self.results.mkdir()
        self._status = Status(place_of(self.file, load_as_written(self.file)))

    def start(self) -> None:
        environment = {**os.environ, FOLDER: str(self.results)}
        with (self.root / "coordinator.log").open("wb") as log:
            command = [*_SPILLWAY, "cluster", "run", str(self.file)]
            self._coordinator = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def ask(self, *words: str) -> None:
        command = [*_SPILLWAY, *words, "--cluster", str(self.file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise SpillwayError(f"{' '.join(words)}: {done.stderr.strip()}")

    def query(self) -> dict[str, Any]:
        found: dict[str, Any] = self._status.now()["queries"].get(QUERY, {})
        return found

    def wait(self, holds: Callable[[dict[str, Any]], bool], within_s: float = START_S) -> None:
        deadline_s = time.monotonic() + within_s
        while not holds(query := self.query()):
            if time.monotonic() > deadline_s:
                raise SpillwayError(
                    f"the cluster stands at {json.dumps(query)} after {within_s:g} s; {self.said()}"
                )
            time.sleep(0.3)

    def said(self) -> str:
        logs = [self.root / "coordinator.log", *(self.root / "run" / "logs").glob("*.log")]
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs if log.exists())

    def other_node(self) -> str:
        now = self._status.now()
        return str(next(name for name in now["nodes"] if name != now["queries"][QUERY]["node"]))

    def cpu_s(self) -> float:
        """Of all processes of the nodes so far."""
        total = 0.0
        for process in self._processes():
            for each in [process, *process.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    used = each.cpu_times()
                    total += used.user + used.system
        return total

    def close(self) -> None:
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                for each in [process, *process.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess, ProcessLookupError):
                        os.kill(each.pid, signal.SIGKILL)
        self._coordinator.wait()

    def _processes(self) -> list[psutil.Process]:
        """The coordinator and the nodes: their command lines name this file."""
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if str(self.file) in (process.info["cmdline"] or [])
        ]


def settled(query: dict[str, Any]) -> bool:
    moves = query.get("to") is not None or query.get("next") is not None
    return not moves and query.get("state") == "runs" and query.get("doing") in DELIVERS


@contextmanager
def cluster_in(root: Path) -> Iterator[Cluster]:
    made = Cluster(root)
    made.start()
    try:
        yield made
    finally:
        made.close()

"""A live cluster for tests: coordinators and nodes are processes, Spark is Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from spillway.check.flow_file import load_flow
from spillway.hosts.cluster.opening import place_of
from spillway.hosts.cluster.status import Status

SPILLWAY = [sys.executable, "-m", "spillway.cli.app"]
START_S = 240.0  # two cores that others use as well
LEASE_S = 8.0
DELIVERS = ("running", "catching up")

FLOW = """\
streams:
  readings:
    source: synthetic
    options: {{rate: 300, columns: "id position, key key(5), event_time time"}}
    event_time: event_time
    watermark: 2s
classes:
  gold: {{delay: 4s, priority: 3, manager: none}}
  low: {{delay: 8s, manager: none}}
queries:
  rows:
    class: gold
    sink: {{type: parquet, path: {root}/rows}}
    sql: SELECT id FROM readings
  counts:
    class: low
    sink: {{type: parquet, path: {root}/counts}}
    sql: SELECT window(event_time, '2 seconds') AS w, count(*) AS n FROM readings
         GROUP BY window(event_time, '2 seconds')
cluster:
  folder: {root}/run
  control: {control}
  fewest: 2
  most: 3
  upper: 20.0  # what moves is moved by the test, however busy the machine is
  lease: {lease:g}s
spark:
  config: {{spark.driver.memory: 600m}}
"""


class Live:
    """One cluster; everything that it started is gone when it is closed."""

    def __init__(self, root: Path, control: str = "{type: folder}", flow: str = FLOW) -> None:
        self.root, self.file = root, root / "live.yaml"
        self.file.write_text(flow.format(root=root, control=control, lease=LEASE_S))
        self._coordinators: list[subprocess.Popen[bytes]] = []
        self._status: Status | None = None

    def coordinator(self) -> subprocess.Popen[bytes]:
        with (self.root / f"coordinator-{len(self._coordinators)}.log").open("wb") as log:
            command = [*SPILLWAY, "cluster", "run", str(self.file)]
            made = subprocess.Popen(command, stdout=log, stderr=log)
        self._coordinators.append(made)
        return made

    def ask(self, *words: str) -> str:
        command = [*SPILLWAY, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        """As the command shows it, without a process for every look."""
        if self._status is None:
            self._status = Status(place_of(self.file, load_flow(self.file)))
        return self._status.now()

    def leader(self) -> int:
        """The process that leads."""
        return int(self.status()["leader"]["id"].split("-")[-2])

    def await_(self, holds: Callable[[dict[str, Any]], bool], within_s: float) -> float:
        begun_s = time.monotonic()
        while not holds(now := self.status()):
            assert time.monotonic() - begun_s < within_s, json.dumps(now, indent=1) + self.said()
            time.sleep(1.0)
        return time.monotonic() - begun_s

    def said(self) -> str:
        logs = [*self.root.glob("coordinator-*.log"), *(self.root / "run" / "logs").glob("*.log")]
        return "\n".join(f"== {log.name}\n{log.read_text()[-1500:]}" for log in sorted(logs))

    def node(self, name: str) -> psutil.Process:
        """The newest process that goes by the name."""
        found = [
            process
            for process in psutil.process_iter(["cmdline", "create_time"])
            if str(self.file) in (process.info["cmdline"] or [])
            and (process.info["cmdline"] or [])[-1] == name
        ]
        return max(found, key=lambda process: process.info["create_time"])

    def rows(self, query: str) -> Iterator[dict[str, Any]]:
        """What readers of the sink see: the files that Spark's own log of them names."""
        for file in _committed_files(self.root / query):
            yield from pq.read_table(file).to_pylist()

    def close(self) -> None:
        for process in psutil.process_iter(["cmdline"]):
            if str(self.file) in (process.info["cmdline"] or []):
                signal_tree(process, signal.SIGKILL)
        for each in self._coordinators:
            each.wait()


def signal_tree(process: psutil.Process, number: signal.Signals) -> None:
    """All at once, as when a machine dies or stands still."""
    with suppress(psutil.NoSuchProcess):
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                os.kill(each.pid, number)


def tree_of(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def settled(status: dict[str, Any]) -> bool:
    """Every query is where it should be, and has delivered something since it came there."""
    queries = status["queries"].values()
    return bool(queries) and all(
        query["state"] == "runs"
        and query["to"] is None
        and query["next"] is None
        and query.get("doing") in DELIVERS
        for query in queries
    )


def on(query: str, not_on: str) -> Callable[[dict[str, Any]], bool]:
    """The query has left that node, and all have settled."""
    return lambda now: settled(now) and now["queries"][query]["node"] != not_on


def _committed_files(folder: Path) -> list[Path]:
    log = folder / "_spark_metadata"
    numbers = sorted(int(p.name.split(".")[0]) for p in log.iterdir() if p.name[0].isdigit())
    found: list[Path] = []
    for number in numbers:
        whole = log / f"{number}.compact"
        lines = (whole if whole.exists() else log / str(number)).read_text().splitlines()[1:]
        files = [Path(json.loads(line)["path"].removeprefix("file:")) for line in lines]
        found = files if whole.exists() else found + files
    return found


def doubles(values: list[Any]) -> list[Any]:
    return [value for value, times in Counter(values).items() if times > 1]

"""`spillway run` from the shell: what it prints, what it warms up, and that none of it counts."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from spillway.hosts.spark.files import Folder, audits

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]

STREAMS = {
    "left_side": {"source": "synthetic", "options": {"rate": 500}, "event_time": "event_time"},
    "right_side": {"source": "synthetic", "options": {"rate": 500}, "event_time": "event_time"},
}
COUNTS = "SELECT key, count(*) AS n FROM left_side GROUP BY key"
JOIN = (
    "SELECT l.id FROM left_side l JOIN right_side r ON l.id = r.id AND r.event_time BETWEEN"
    " l.event_time - INTERVAL 1 SECOND AND l.event_time + INTERVAL 1 SECOND"
)
QUERIES = {
    "counts": {"class": "gold", "mode": "update", "sink": {"type": "noop"}, "sql": COUNTS},
    "pairs": {"class": "gold", "sink": {"type": "noop"}, "sql": JOIN},
    "many": {
        "class": "gold",
        "sink": {"type": "noop"},
        "template": "SELECT key, value FROM left_side WHERE value > :least",
        "instances": [{"least": 0.5}, {"least": 0.9}],
    },
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    folder: Folder
    errors: str
    code: int
    events: list[dict[str, Any]]

    def event(self, kind: str) -> dict[str, Any]:
        [found] = [event for event in self.events if event.get("event") == kind]
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A flow of three kinds of queries; one planner is killed on the way."""
    root = tmp_path_factory.mktemp("first")
    flow = {
        "streams": STREAMS,
        "classes": {"gold": {"delay": "5s"}},
        "queries": QUERIES,
        "control": {"warm_up": "180s"},  # it ends once batches get no faster
    }
    (root / "flow.yaml").write_text(yaml.safe_dump(flow))
    command = [sys.executable, "-c", "from spillway.cli.app import main; main()", "run"]
    command += [str(root / "flow.yaml"), "--folder", str(root / "run")]
    journal, printed = root / "run" / "journal.jsonl", root / "errors"
    with printed.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            _wait_for(lambda: _all_run(printed), process)
            [planner, *_] = _planners_below(process.pid)
            planner.kill()
            _wait_for(lambda: '"restarted"' in journal.read_text(), process)
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
        finally:
            process.kill()
    folder = Folder(root=root / "run")
    events = [json.loads(line) for line in folder.journal.read_text().splitlines()]
    return Ran(folder=folder, errors=(root / "errors").read_text(), code=code, events=events)


def _all_run(printed: Path) -> bool:
    return all(f"{query} running" in printed.read_text() for query in QUERIES)


def _wait_for(said: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    ends_s = time.monotonic() + 400.0
    while not said():
        assert process.poll() is None
        assert time.monotonic() < ends_s
        time.sleep(0.2)


def _planners_below(root: int) -> list[psutil.Process]:
    """Among a process's children and theirs."""
    found = []
    for process in psutil.Process(root).children(recursive=True):
        with suppress(psutil.Error):  # a worker that has just ended
            if any("python_streaming_source_runner" in word for word in process.cmdline()):
                found.append(process)
    return found


def test_a_query_that_ended_is_restarted_and_no_trace_is_on_the_terminal(ran: Ran) -> None:
    assert ran.code == 0
    assert ran.event("restarted")
    for trace in ("Traceback", "\tat org.", "Exception"):
        assert trace not in ran.errors
    assert "Exception" in ran.folder.spark_log.read_text()


def test_the_terminal_says_where_sparks_log_is_and_how_each_query_starts(ran: Ran) -> None:
    assert str(ran.folder.spark_log) in ran.errors
    for query in QUERIES:
        assert ran.errors.index(f"{query} ") < ran.errors.index(f"{query} running")
    assert "warming up" in ran.errors


def test_every_kind_of_query_is_warmed_up_and_nothing_of_it_stays(ran: Ran) -> None:
    warmed = ran.event("warmed up")
    assert set(warmed["batches"]) == set(QUERIES)
    assert all(batches > 0 for batches in warmed["batches"].values())
    assert warmed["skipped"] == {}
    assert not (ran.folder.root / "warm-up").exists()
    assert {path.name for path in (ran.folder.root / "checkpoints").iterdir()} == set(QUERIES)


def test_what_arrived_while_it_warmed_up_is_not_counted(ran: Ran) -> None:
    [audit] = audits(ran.folder.ledger("counts", "left_side"), None)
    assert audit.exact
    warmed_s = ran.event("warmed up")["time_s"]
    assert audit.began_us / 1e6 >= warmed_s
    assert audit.totals.offered <= 500 * (ran.event("stopped")["time_s"] - warmed_s)

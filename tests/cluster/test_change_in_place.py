"""Queries of a plain `spillway run` change while they run and back again, also when it is killed
meanwhile: every row and every window comes out once, and whole."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from live import SPILLWAY, signal_tree
from two_queries import OTHER_COUNTS, OTHER_ROWS, QUERIES, differences, environment, kept

WITHIN_S = 300.0


class Run:
    def __init__(self, root: Path) -> None:
        self.file, self.folder, self.results = root / "flow.yaml", root / "run", root / "results"
        self.file.write_text(QUERIES.format())
        self._log = root / "log"

    def start(self) -> None:
        command = [*SPILLWAY, "run", str(self.file), "--folder", str(self.folder)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment(self.results)
            )

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*SPILLWAY, "query", "change", *words, "--folder", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def change(self, *words: str) -> str:
        done = self.ask(*words)
        assert done.returncode == 0, done.stderr + self._log.read_text()[-3000:]
        return done.stdout

    def newest(self, query: str) -> int:
        """The generation of its last results."""
        return max((g for g, _ in kept(self.results, query)), default=0)

    def await_(self, holds: Callable[[], bool]) -> None:
        begun_s = time.monotonic()
        while not holds():
            assert self.process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() - begun_s < WITHIN_S, self._log.read_text()[-3000:]
            time.sleep(0.5)

    def is_done(self, query: str) -> bool:
        """No change of it is under way."""
        given = json.loads((self.folder / "versions.json").read_text())[query]
        return given["next"] is None and given["changes_to"] is None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(120) == 0, self._log.read_text()[-3000:]

    def kill(self) -> None:
        signal_tree(psutil.Process(self.process.pid), signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    made.start()
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()


@pytest.mark.timeout(1200)
def test_queries_change_while_they_run_and_back_also_over_a_kill(run: Run, tmp_path: Path) -> None:
    counts, rows = tmp_path / "counts.sql", tmp_path / "rows.sql"
    counts.write_text(OTHER_COUNTS)
    rows.write_text(OTHER_ROWS)
    run.await_(lambda: run.newest("counts") == run.newest("rows") == 1)
    assert "needs the columns m" in run.change("counts", "--sql", str(counts), "--check")
    assert not (run.folder / "versions.json").exists()
    run.change("counts", "--sql", str(counts), "--partitions", "3")
    run.change("rows", "--sql", str(rows))
    refused = run.ask("rows", "--back")
    assert refused.returncode == 2
    assert "changes already" in refused.stderr
    run.await_(lambda: run.newest("counts") == run.newest("rows") == 2)
    run.await_(lambda: run.is_done("counts") and run.is_done("rows"))

    run.change("counts", "--back")
    run.change("rows", "--back")
    time.sleep(4.0)  # somewhere in the middle
    run.kill()
    run.start()
    run.await_(lambda: run.newest("counts") >= 3 and run.newest("rows") >= 3)
    run.await_(lambda: run.is_done("counts") and run.is_done("rows"))
    run.stop()

    tuples, wrong = differences(run.results)
    assert wrong == []
    assert tuples > 0
    for query, column in (("counts", "m"), ("rows", "other")):
        versions = {g: column in row for g, row in kept(run.results, query)}
        assert versions == {g: g == 2 for g in versions}
        ledgers = sorted((run.folder / "ledgers").glob(f"{query}*.readings.jsonl"))
        for ledger in ledgers:
            assert subprocess.run([*SPILLWAY, "ledger", str(ledger)], check=False).returncode == 0

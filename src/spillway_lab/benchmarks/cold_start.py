"""`cold-start`: how long a query is above its target after a start, a restart and a driver kill.

Every life of the query has a process and a JVM of its own: start and stop; wait; start on the same
checkpoint, and kill all of it while it runs; start again. The gate's three lives come before those
of the bare source, over a like stream. The session is that of `spillway run` for both.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.report import Table
from spillway_lab.benchmarks.cold_start_run import RATE_PER_S, TARGET_S, Batch, Life, read_lines
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

LIFE_S = 45.0
SESSION_S = 120.0  # at most, for a session to open and to close
PHASES = ("start", "restart", "kill")  # what comes before the life that is measured
KILLED = "restart"  # the life that ends by a kill
DOWN_S = {"start": 0.0, "restart": 20.0, "kill": 3.0}  # before it
SIDES = ("gate", "plain")
SECOND = 2  # the batch from which on a start is to be within the target

Figures = dict[str, Any]


def run(setup: BenchSetup) -> BenchReport:
    seconds = LIFE_S / 2.0 if setup.quick else LIFE_S
    results: dict[str, dict[str, Figures]] = {phase: {} for phase in PHASES}
    for number, side in enumerate(SIDES):
        with tempfile.TemporaryDirectory(prefix="spillway-cold-") as folder:
            begun_s: float | None = None
            for place, phase in enumerate(PHASES):
                setup.progress(f"{side}: {phase}", (number + place / len(PHASES)) / len(SIDES))
                time.sleep(DOWN_S[phase])
                file = Path(folder) / f"{phase}.jsonl"
                stops_after_s = None if phase == KILLED else seconds
                life = Life(
                    side=side,
                    folder=folder,
                    lines=str(file),
                    begun_s=begun_s,
                    seconds=stops_after_s,
                )
                _lived(life, seconds)
                with file.open() as lines:
                    started_s, batches = read_lines(lines)
                begun_s = begun_s or started_s
                span_s = (started_s, started_s + seconds)
                results[phase][side] = figures(batches, span_s, begun_s)
    return BenchReport(results=results, tables=(_table(results),), failures=failures(results))


def figures(batches: Sequence[Batch], span_s: tuple[float, float], begun_s: float) -> Figures:
    """Of one life, from its query's start on. A batch is above the target when the mean delay of
    its tuples is, and so is the time since the batch before it ended."""
    from_s, until_s = span_s
    above_s, above, last_late, before_s = 0.0, 0, 0, from_s
    for number, batch in enumerate(batches, start=1):
        if batch.delay_s(begun_s) > TARGET_S:
            above_s += batch.ended_s - before_s
            above += batch.tuples - batch.shed
            last_late = number
        before_s = batch.ended_s
    still_s = max(0.0, until_s - before_s)
    if still_s > TARGET_S:  # nothing came out any more
        above_s, last_late = above_s + still_s, len(batches)
    return {
        "seconds_above_target": above_s,
        "tuples_above_target": above,
        "shed": sum(batch.shed for batch in batches),
        "offered": sum(batch.tuples for batch in batches),
        "first_batch_s": batches[0].ended_s - from_s if batches else None,
        "within_from_batch": last_late + 1 if last_late < len(batches) else None,
        "batches": len(batches),
    }


def failures(results: dict[str, dict[str, Figures]]) -> tuple[str, ...]:
    found = []
    for phase, sides in results.items():
        gate = sides["gate"]
        if gate["shed"]:
            found.append(f"{phase}: {gate['shed']:,} of {gate['offered']:,} shed below capacity")
        if gate["within_from_batch"] is None:
            found.append(f"{phase}: not within the target when it ended")
    within = results["start"]["gate"]["within_from_batch"]
    if within is not None and within > SECOND:
        found.append(f"start: within the target from batch {within} on, asked for is {SECOND}")
    return tuple(found)


def _lived(life: Life, seconds: float) -> None:
    """Until it ends by itself; one that has no end is killed, with its JVM and its workers."""
    command = [sys.executable, "-m", "spillway_lab.benchmarks.cold_start_run"]
    said = Path(life.folder) / "log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*command, json.dumps(asdict(life))], stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_for_query(Path(life.lines), process)
            if life.seconds is None:
                time.sleep(seconds)
                ended = process.poll()  # of itself: None, as it should be
            else:
                ended = process.wait(life.seconds + SESSION_S)
            if ended:
                lines = said.read_text(errors="replace").splitlines() or ["it said nothing"]
                raise SpillwayError(f"the query of side '{life.side}' ended: {lines[-1][:300]}")
        except subprocess.TimeoutExpired:
            raise SpillwayError(f"side '{life.side}' did not stop within {SESSION_S:g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait_for_query(lines: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + SESSION_S
    while not (lines.exists() and lines.stat().st_size) and process.poll() is None:
        if time.monotonic() > deadline_s:
            raise SpillwayError(f"no query was started within {SESSION_S:g} s")
        time.sleep(0.1)


def _table(results: dict[str, dict[str, Figures]]) -> Table:
    names = (
        "seconds_above_target",
        "tuples_above_target",
        "shed",
        "first_batch_s",
        "within_from_batch",
    )
    return Table(
        title=f"{RATE_PER_S:,} tuples/s, target {TARGET_S:g} s mean, each in a new JVM",
        columns=("after", "side", *names),
        rows=[
            (phase, side, *(sides[side][name] for name in names))
            for phase, sides in results.items()
            for side in sides
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="cold-start",
        title="seconds and tuples above the target after a start, a restart and a driver kill",
        run=run,
    ),
)

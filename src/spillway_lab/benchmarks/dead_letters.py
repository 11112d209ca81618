"""`dead-letters`: what recording 10,000 malformed records costs, by what is recorded already.

The tasks of a batch share one lock while they record: what it costs, others wait for.
"""

import tempfile
import time

import numpy as np

from spillway.logs.dead_letters import DeadLetters, Found, dead_letter_totals
from spillway.logs.intervals import NOWHERE, interval, runs
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

RECORDED = 10_000
_READ = 1_000_000  # positions of one read


def run(setup: BenchSetup) -> BenchReport:
    """Each round records 10,000 further positions; counts are checked."""
    before = 5_000_000 if setup.quick else 100_000_000
    rounds = 5 if setup.quick else 20
    results: dict[str, dict[str, float]] = {}
    cases = {
        "side by side": (1, True),
        "every second one": (2, True),
        "every second one, read once a mask": (2, False),
    }
    for place, (name, kind) in enumerate(cases.items()):
        setup.progress(name, place / len(cases))
        results[name] = _measured(before, rounds, *kind)
    rows = [(name, *found.values()) for name, found in results.items()]
    columns = ("recorded before", "positions", "10,000 more (ms, median)", "(ms, longest)")
    table = Table(title="one partition, one writer", columns=columns, rows=rows)
    return BenchReport(results=results, tables=(table,))


def _measured(before: int, rounds: int, step: int, judged: bool) -> dict[str, float]:
    took_s = []
    with tempfile.TemporaryDirectory() as folder:
        place, stop = DeadLetters(directory=folder), 0
        for _ in range(before // _READ):
            stop += step * _READ
            place.record(0, malformed=_found(stop - step * _READ, stop, step, judged))
        for _ in range(rounds):
            stop += step * RECORDED
            found = _found(stop - step * RECORDED, stop, step, judged)
            started_s = time.perf_counter()
            place.record(0, malformed=found)
            took_s.append(time.perf_counter() - started_s)
        if dead_letter_totals(folder)["malformed"] != stop // step:
            raise RuntimeError("the count is wrong")
    return {
        "positions": before,
        "median_ms": round(float(np.median(took_s)) * 1e3, 2),
        "longest_ms": round(max(took_s) * 1e3, 2),
    }


def _found(start: int, stop: int, step: int, judged: bool) -> Found:
    """Every `step`-th of these positions, by a read of all of them or by one mask of several."""
    positions = interval(start, stop) if step == 1 else runs(np.arange(start, stop, step))
    return Found(positions=positions, judged=interval(start, stop) if judged else NOWHERE)


BENCHMARKS = (
    Benchmark(
        name="dead-letters",
        title="What recording malformed records costs, by how many there are already",
        run=run,
    ),
)

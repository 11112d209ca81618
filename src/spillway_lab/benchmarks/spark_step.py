"""`spark-step`: how fast a query is back at its target after the load or the machine changed."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from spillway.hosts.spark.driver.progress import DeliveredBatch, delivered, summarise
from spillway.load.laws import LAWS
from spillway.model import Target
from spillway.report import Table
from spillway_lab.benchmarks.calibration import calibrate_warm
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.spark_runs import Bench, Run, gate, windowed

TARGET = Target(delay_s=2.0)
QUICK_LAWS = ("predictive", "aloma")
JUDGED = "predictive"
PHASE_S = 30.0
WITHIN = 1.1  # back at the target: no more than this factor of it, and staying there
WINDOW_S = 5.0  # over so long a delay is averaged


def run(setup: BenchSetup) -> BenchReport:
    laws = QUICK_LAWS if setup.quick else tuple(law for law in LAWS if law != "none")
    bench = Bench()
    results: dict[str, dict[str, Any]] = {}
    try:
        setup.progress("warming up", 0.02)
        machine = calibrate_warm(bench, windowed, TARGET)
        capacity = machine.capacity_per_s(TARGET)
        for number, law in enumerate(laws):
            for name, case in CASES.items():
                setup.progress(f"{law}: {name}", 0.1 + 0.9 * number / len(laws))
                results.setdefault(law, {})[name] = case(bench, law, capacity)
    finally:
        bench.close()
    failures = [
        f"{JUDGED}: {case}, {phase}: not back at the target within {PHASE_S:.0f} s"
        for case, phases in results[JUDGED].items()
        for phase, seen in phases.items()
        if seen["settled_after_s"] is None
    ]
    return BenchReport(results=results, tables=(_table(results),), failures=tuple(failures))


def _rate(bench: Bench, law: str, capacity: float) -> dict[str, Any]:
    """1.5 times the capacity, then three times that, then back."""
    low, begin_s = round(1.5 * capacity), time.time()
    profile = f"0:{low},{2 * PHASE_S:.0f}:{3 * low},{3 * PHASE_S:.0f}:{low}"
    run = bench.start(_gate(law, profile, start=repr(begin_s)), windowed)
    return _phases(run, ("up", "down"), begin_s)


def _cost(bench: Bench, law: str, capacity: float) -> dict[str, Any]:
    """From the first change on every row counts three times; from the second on once again."""
    begin_s = time.time()
    changes = [begin_s + (2 + i) * PHASE_S for i in range(2)]

    def heavier(rows: DataFrame) -> DataFrame:
        first, last = (f"timestamp_micros({round(at_s * 1e6)})" for at_s in changes)
        heavy = f"_arrival BETWEEN {first} AND {last}"
        copies = rows.selectExpr("*", f"explode(sequence(1, IF({heavy}, 3, 1))) AS copy")
        return windowed(copies)

    rate = str(round(1.5 * capacity))
    run = bench.start(_gate(law, rate, start=repr(begin_s)), heavier)
    return _phases(run, ("up", "down"), begin_s)


def _background(bench: Bench, law: str, capacity: float) -> dict[str, Any]:
    """A process takes one core for a phase."""
    run = bench.start(_gate(law, str(round(1.5 * capacity))), windowed)
    run.for_batches(3)
    run.for_seconds(2 * PHASE_S)
    began_s = time.time()
    with _busy_core():
        run.for_seconds(PHASE_S)
    ended_s = time.time()
    run.for_seconds(PHASE_S)
    return _settling(run, {"taken": began_s, "given back": ended_s})


CASES: dict[str, Callable[[Bench, str, float], dict[str, Any]]] = {
    "rate x3": _rate,
    "cost x3": _cost,
    "one core taken": _background,
}


def _gate(law: str, rate: str, **more: str) -> Any:
    return gate(rate=rate, delay=f"{TARGET.delay_s}s", manager=law, **more)


def _phases(run: Run, names: tuple[str, str], begin_s: float) -> dict[str, Any]:
    run.for_seconds(begin_s + 4 * PHASE_S - time.time())
    changes = {name: begin_s + (2 + i) * PHASE_S for i, name in enumerate(names)}
    return _settling(run, changes)


def _settling(run: Run, changes: dict[str, float]) -> dict[str, Any]:
    """Seconds from each change until the delay is back at the target for good."""
    batches = [d for b in run.batches for d in delivered(b)]
    run.stop()
    figures: dict[str, Any] = {}
    for name, at_s in changes.items():
        phase = [b for b in batches if at_s <= b.ended_s < at_s + PHASE_S]
        seen = summarise(phase, TARGET.delay_s)
        figures[name] = {
            "settled_after_s": _settled_after_s(phase, at_s),
            "mean_delay_s": None if seen is None else seen.mean_s,
            "worst_batch_s": max((b.mean_delay_s for b in phase), default=None),
        }
    return figures


def _settled_after_s(phase: list[DeliveredBatch], at_s: float) -> float | None:
    """None: it never came back within the phase. A single long batch is noise, not a departure."""
    late = [b.ended_s for b in phase if _mean_until(b.ended_s, phase) > WITHIN * TARGET.delay_s]
    if not phase or (late and late[-1] == phase[-1].ended_s):
        return None
    return max(0.0, late[-1] - at_s) if late else 0.0


def _mean_until(end_s: float, phase: list[DeliveredBatch]) -> float:
    """Mean delay of what was delivered within the last seconds."""
    recent = [b for b in phase if end_s - WINDOW_S < b.ended_s <= end_s and b.kept_tuples]
    kept = sum(b.kept_tuples for b in recent)
    return sum(b.mean_delay_s * b.kept_tuples for b in recent) / kept if kept else 0.0


@contextmanager
def _busy_core() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _table(results: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for law, cases in results.items():
        for case, changes in cases.items():
            for change, f in changes.items():
                settled = f["settled_after_s"]
                shown = "never" if settled is None else f"{settled:.1f}"
                rows.append(
                    (law, f"{case}: {change}", shown, f["mean_delay_s"], f["worst_batch_s"])
                )
    columns = ("load manager", "change", "settled after (s)", "mean delay (s)", "worst batch (s)")
    return Table(title=f"target {TARGET}, back within {WITHIN:.0%}", columns=columns, rows=rows)


BENCHMARKS = (
    Benchmark(
        name="spark-step",
        title="time to return to the target after rate, cost or machine changed",
        run=run,
    ),
)

"""`spark-overload`: constant overload on Spark, every load manager against the oracle."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from spillway.benchmarks import kafka_overload
from spillway.benchmarks.calibration import (
    Calibration,
    best_length_s,
    calibrate_again,
    calibrate_warm,
    mean_of,
)
from spillway.benchmarks.overload_run import measured, span_s
from spillway.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway.benchmarks.spark_runs import Bench, gate, plain, windowed
from spillway.experiments.report import Table
from spillway.load.laws import LAWS
from spillway.model import Target

QUICK_LAWS = ("predictive", "aloma")
PLAIN = "plain_spark"
TWO_SECONDS = Target(delay_s=2.0)
CALIBRATION_S = 12.0  # before and after every run
BOUND_DOUBT = 1.02  # what a calibration does not tell apart


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    overload: float
    target: Target


def run(setup: BenchSetup) -> BenchReport:
    laws = QUICK_LAWS if setup.quick else tuple(LAWS)
    spans_s = (15.0, 20.0) if setup.quick else (20.0, 30.0)
    bench = Bench()
    try:
        setup.progress("warming up and calibrating", 0.02)
        machine = calibrate_warm(bench, windowed, TWO_SECONDS)
        cases = _cases(machine)
        results: dict[str, dict[str, Any]] = {}
        for number, case in enumerate(cases):

            def progress(what: str, part: float, number: int = number) -> None:
                setup.progress(what, 0.1 + 0.9 * (number + part) / len(cases))

            results[case.name] = _case(bench, case, laws, machine, spans_s, setup.seed, progress)
        if kafka_overload.servers():
            setup.progress("Kafka JSON", 0.9)
            case = Case(name="Kafka JSON, 2 s", overload=0.0, target=TWO_SECONDS)
            results[case.name] = kafka_overload.overload(bench, case.target, laws, spans_s)
            cases.append(case)
    finally:
        bench.close()
    return _report(cases, results, machine)


def _case(
    bench: Bench,
    case: Case,
    laws: tuple[str, ...],
    machine: Calibration,
    spans_s: tuple[float, float],
    seed: int,
    progress: Callable[[str, float], None],
) -> dict[str, Any]:
    """Every load manager between two calibrations at the batch size of the case."""
    rate = case.overload * machine.capacity_per_s(TWO_SECONDS)
    tuples = _tuples_of_a_batch(machine, rate, case.target)
    before = calibrate_again(bench, windowed, tuples, machine, seconds=CALIBRATION_S)
    rows: dict[str, Any] = {}
    for place, law in enumerate((*laws, PLAIN)):
        progress(f"{case.name}: {law}", place / (len(laws) + 1))
        row = _measure(bench, law, case, rate, spans_s, seed)
        after = calibrate_again(bench, windowed, tuples, machine, seconds=CALIBRATION_S)
        around = mean_of((before, after))
        best = around.best_kept_per_s(rate, case.target)
        # Above what the better of the two allows something was measured wrongly.
        bound = max(c.bound_per_s(rate, case.target) for c in (before, after))
        row["efficiency"] = row["goodput_per_s"] / best if best > 0.0 else None
        row["bound_ratio"] = row["goodput_per_s"] / bound if bound > 0.0 else None
        row["calibrations"] = [asdict(before), asdict(after)]
        rows[law], before = row, after
    return rows


def _tuples_of_a_batch(machine: Calibration, rate_per_s: float, target: Target) -> int:
    length_s = best_length_s(target)
    return max(1000, round(machine.best_kept_per_s(rate_per_s, target) * length_s))


def _cases(calibration: Calibration) -> list[Case]:
    tight = Target(delay_s=round(4.0 * calibration.fixed_s, 3))
    wide = TWO_SECONDS
    return [
        Case(name="2x, 2 s", overload=2.0, target=wide),
        Case(name="10x, 2 s", overload=10.0, target=wide),
        Case(name="2x, 4 o", overload=2.0, target=tight),
        Case(name="10x, 4 o", overload=10.0, target=tight),
    ]


def _measure(
    bench: Bench,
    law: str,
    case: Case,
    rate_per_s: float,
    spans_s: tuple[float, float],
    seed: int,
) -> dict[str, Any]:
    options = {"rate": str(round(rate_per_s)), "seed": str(seed)}
    if law == PLAIN:
        return _measure_plain(bench, case, rate_per_s, options, sum(spans_s))
    options |= {"delay": f"{case.target.delay_s}s", "manager": law}
    row = measured(bench, gate(**options), windowed, case.target, spans_s)
    return row | {"rate_per_s": rate_per_s}


def _measure_plain(
    bench: Bench, case: Case, rate_per_s: float, options: dict[str, str], seconds: float
) -> dict[str, Any]:
    """Without a gate a batch holds everything that has arrived, so its delays follow from the rate.

    When not even the first batch ends in time, what it holds is older than half of the run.
    """
    start_s = time.time()
    run = bench.start(plain(**options, start=repr(start_s)), windowed)
    run.for_seconds(seconds)
    batches = run.batches
    run.stop()
    rows, delay_sum_s, oldest_s = 0, 0.0, 0.0
    for batch in batches:
        low, high = (batch.sources[0][key]["position"] for key in ("startOffset", "endOffset"))
        ages_s = [batch.ended_s - start_s - position / rate_per_s for position in (low, high)]
        rows += high - low
        delay_sum_s += (high - low) * sum(ages_s) / 2.0
        oldest_s = max(oldest_s, ages_s[0])
    return {
        "mean_delay_s": delay_sum_s / rows if rows else seconds / 2.0,
        "p99_delay_s": oldest_s if rows else seconds,
        "loss_ratio": 0.0,
        "goodput_per_s": rows / span_s(batches) if rows else 0.0,
        "target_s": case.target.delay_s,
        "rate_per_s": rate_per_s,
        "batches": len(batches),
    }


def _report(
    cases: list[Case], results: dict[str, dict[str, Any]], machine: Calibration
) -> BenchReport:
    failures = []
    for case in cases:
        for law, row in results[case.name].items():
            held = row.get("mean_delay_s", 0.0) <= 1.05 * case.target.delay_s
            if held and (row.get("bound_ratio") or 0.0) > BOUND_DOUBT:
                failures.append(f"{case.name}, {law}: goodput above the bound: measured wrongly")
    return BenchReport(
        results=results,
        details={"calibration": asdict(machine)},
        tables=tuple(_table(case, results[case.name]) for case in cases),
        failures=tuple(failures),
    )


def _table(case: Case, rows: dict[str, Any]) -> Table:
    columns = ("load manager", "mean (s)", "p95 (s)", "p99 (s)", "loss", "kept/s", "efficiency")
    keys = ("mean_delay_s", "p95_delay_s", "p99_delay_s", "loss_ratio", "goodput_per_s")
    offered_per_s = next(iter(rows.values()))["rate_per_s"]
    return Table(
        title=f"{case.name}: {case.target}, {offered_per_s:,.0f} tuples/s offered",
        columns=columns,
        rows=[
            (law, *(row.get(key, "") for key in keys), row["efficiency"])
            for law, row in rows.items()
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="spark-overload",
        title="constant overload on Spark: delay, loss and efficiency of every load manager",
        run=run,
    ),
)

"""`spark-overload`: constant overload on Spark, every load manager against the oracle."""

import time
from dataclasses import asdict, dataclass
from typing import Any

from spillway.benchmarks.calibration import Calibration, calibrate, mean_of
from spillway.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway.benchmarks.spark_runs import Bench, gate, plain, windowed
from spillway.experiments.report import Table
from spillway.load.laws import LAWS
from spillway.model import Target
from spillway.plants.spark.delays import delivered, summarise
from spillway.plants.spark.monitor import BatchProgress

FIRST_GUESS_TUPLES = 1_000_000
QUICK_LAWS = ("predictive", "aloma")
PLAIN = "plain_spark"


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    overload: float
    target: Target


def run(setup: BenchSetup) -> BenchReport:
    laws = QUICK_LAWS if setup.quick else tuple(LAWS)
    warm_s, measured_s = (10.0, 20.0) if setup.quick else (15.0, 40.0)
    bench = Bench()
    try:
        setup.progress("warming up and calibrating", 0.02)
        before = calibrate(bench, windowed, FIRST_GUESS_TUPLES, batches=8, warm=30)
        before = calibrate(bench, windowed, _tuples_of_a_batch(before), batches=8, warm=6)
        cases = _cases(before, setup.quick)
        measured: dict[str, dict[str, Any]] = {}
        steps = len(cases) * (len(laws) + 1)
        for number, case in enumerate(cases):
            rate = case.overload * before.capacity_per_s(_two_seconds())
            rows = measured.setdefault(case.name, {})
            for place, law in enumerate((*laws, PLAIN)):
                done = 0.1 + 0.85 * (number * (len(laws) + 1) + place) / steps
                setup.progress(f"{case.name}: {law}", done)
                rows[law] = _measure(bench, law, case, rate, warm_s, measured_s, setup.seed)
        setup.progress("calibrating again", 0.96)
        after = calibrate(bench, windowed, _tuples_of_a_batch(before), batches=8, warm=6)
    finally:
        bench.close()
    return _report(cases, measured, before, after)


def _two_seconds() -> Target:
    return Target(delay_s=2.0)


def _tuples_of_a_batch(calibration: Calibration) -> int:
    length_s = 2.0 * 2.0 / 3.0
    return max(1000, int((length_s - calibration.fixed_s) / calibration.kept_s))


def _cases(calibration: Calibration, quick: bool) -> list[Case]:
    tight = Target(delay_s=round(4.0 * calibration.fixed_s, 3))
    wide = _two_seconds()
    cases = [
        Case(name="2x, 2 s", overload=2.0, target=wide),
        Case(name="10x, 2 s", overload=10.0, target=wide),
        Case(name="2x, 4 o", overload=2.0, target=tight),
        Case(name="10x, 4 o", overload=10.0, target=tight),
    ]
    return cases[:1] if quick else cases


def _measure(
    bench: Bench,
    law: str,
    case: Case,
    rate_per_s: float,
    warm_s: float,
    measured_s: float,
    seed: int,
) -> dict[str, Any]:
    options = {"rate": str(round(rate_per_s)), "seed": str(seed)}
    if law == PLAIN:
        return _measure_plain(bench, case, rate_per_s, options, warm_s + measured_s)
    options |= {"delay": f"{case.target.delay_s}s", "manager": law}
    run = bench.start(gate(**options), windowed)
    run.for_batches(3)
    run.for_seconds(warm_s)
    batches = run.for_seconds(measured_s)
    run.stop()
    seen = summarise([d for b in batches for d in delivered(b)], case.target.delay_s)
    span_s = _span_s(batches)
    if seen is None or span_s <= 0.0:
        return {"target_s": case.target.delay_s, "rate_per_s": rate_per_s, "goodput_per_s": 0.0}
    return {
        "mean_delay_s": seen.mean_s,
        "p95_delay_s": seen.p95_s,
        "p99_delay_s": seen.p99_s,
        "accumulated_violation_s": seen.accumulated_violation_s,
        "loss_ratio": 1.0 - seen.kept_tuples / max(1, seen.offered_tuples),
        "goodput_per_s": seen.kept_tuples / span_s,
        "target_s": case.target.delay_s,
        "rate_per_s": rate_per_s,
        "batches": seen.batches,
        "mean_batch_s": seen.mean_batch_s,
    }


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
        "goodput_per_s": rows / _span_s(batches) if rows else 0.0,
        "target_s": case.target.delay_s,
        "rate_per_s": rate_per_s,
        "batches": len(batches),
    }


def _span_s(batches: list[BatchProgress]) -> float:
    """From the start of the first batch to the end of the last: whole batches only."""
    return batches[-1].ended_s - batches[0].started_s if batches else 0.0


def _report(
    cases: list[Case],
    measured: dict[str, dict[str, Any]],
    before: Calibration,
    after: Calibration,
) -> BenchReport:
    machine = mean_of([before, after])
    failures = []
    for case in cases:
        for law, row in measured[case.name].items():
            best = machine.best_kept_per_s(row["rate_per_s"], case.target)
            row["efficiency"] = row["goodput_per_s"] / best if best > 0.0 else None
            held = row.get("mean_delay_s", 0.0) <= 1.05 * case.target.delay_s
            if held and row["goodput_per_s"] > 1.02 * machine.bound_per_s(
                row["rate_per_s"], case.target
            ):
                failures.append(f"{case.name}, {law}: goodput above the bound: measured wrongly")
    calibration = {"before": asdict(before), "after": asdict(after)}
    return BenchReport(
        results=measured,
        details={"calibration": calibration},
        tables=tuple(_table(case, measured[case.name]) for case in cases),
        failures=tuple(failures),
    )


def _table(case: Case, rows: dict[str, Any]) -> Table:
    columns = ("load manager", "mean (s)", "p95 (s)", "p99 (s)", "loss", "kept/s", "efficiency")
    keys = ("mean_delay_s", "p95_delay_s", "p99_delay_s", "loss_ratio", "goodput_per_s")
    return Table(
        title=f"{case.name}: {case.target}, {rows[PLAIN]['rate_per_s']:,.0f} tuples/s offered",
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

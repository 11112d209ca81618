"""`spark-overload`: constant overload on Spark, every load manager against the oracle."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.load.laws import LAWS
from spillway.load.oracle import uniform_length_s
from spillway.model import DELAY_SHARES, Target
from spillway.report import Table
from spillway_lab.benchmarks import kafka_overload
from spillway_lab.benchmarks.calibration import Calibration, calibrate_warm
from spillway_lab.benchmarks.overload_run import Sample, row_of, settle_s, span_s
from spillway_lab.benchmarks.probed_run import probed_sample, probes_for
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.spark_runs import Bench, gate, plain, windowed

QUICK_LAWS = ("predictive", "aloma")
PLAIN = "plain_spark"
TWO_SECONDS = Target(delay_s=2.0)
SHORTEST_TARGET_S = 0.2  # noise can make o look like nothing
# Half of it goes to the probes. Those that are judged run longer: efficiency needs many batches,
# and ALoMa goes around its target slowly.
MEASURED_S = {"predictive": 150.0, "aloma": 120.0}
OTHERS_S, PLAIN_S = 45.0, 27.0
BOUND_DOUBT = 1.02  # what a calibration does not tell apart
LEAST_EFFICIENCY = 0.95
HELD = {"predictive": (0.9, 1.05), "aloma": (0.0, 1.05)}  # mean delay, in targets


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    overload: float
    target: Target


def run(setup: BenchSetup) -> BenchReport:
    laws = QUICK_LAWS if setup.quick else tuple(LAWS)
    bench = Bench()
    try:
        setup.progress("warming up and calibrating", 0.02)
        machine = calibrate_warm(bench, windowed, TWO_SECONDS)
        cases = _cases(machine)
        results: dict[str, dict[str, Any]] = {}
        for number, case in enumerate(cases):

            def progress(what: str, part: float, number: int = number) -> None:
                setup.progress(what, 0.1 + 0.9 * (number + part) / len(cases))

            results[case.name] = _case(bench, case, laws, machine, setup.seed, progress)
        if kafka_overload.servers():
            setup.progress("Kafka JSON", 0.9)
            case = Case(name="Kafka JSON, 2 s", overload=0.0, target=TWO_SECONDS)
            results[case.name] = kafka_overload.overload(bench, case.target, laws)
            cases.append(case)
    finally:
        bench.close()
    return _report(cases, results, machine)


def _case(
    bench: Bench,
    case: Case,
    laws: tuple[str, ...],
    machine: Calibration,
    seed: int,
    progress: Callable[[str, float], None],
) -> dict[str, Any]:
    """Every load manager on the same stream, with probes between its batches."""
    rate = case.overload * machine.capacity_per_s(TWO_SECONDS)
    probes = probes_for(_tuples_of_a_batch(machine, rate, case.target))
    rows: dict[str, Any] = {}
    for place, law in enumerate(laws):
        progress(f"{case.name}: {law}", place / (len(laws) + 1))
        stream = _rows(rate, seed) | {"start": repr(time.time())}
        source = gate(**stream, delay=f"{case.target.delay_s}s", manager=law)
        spans_s = settle_s(law), MEASURED_S.get(law, OTHERS_S)
        seen = probed_sample(bench, source, windowed, probes, spans_s)
        rows[law] = row_of([seen.sample], case.target) | {"rate_per_s": rate}
        rows[law] |= seen.efficiency(rate, case.target, machine.scan_share, seed)
    progress(f"{case.name}: plain Spark", len(laws) / (len(laws) + 1))
    rows[PLAIN] = _measure_plain(bench, case, rate, seed)
    return rows


def _tuples_of_a_batch(machine: Calibration, rate_per_s: float, target: Target) -> int:
    length_s = uniform_length_s(target)
    return max(1000, round(machine.best_kept_per_s(rate_per_s, target) * length_s))


def _cases(calibration: Calibration) -> list[Case]:
    tight = Target(delay_s=max(SHORTEST_TARGET_S, round(4.0 * calibration.fixed_s, 3)))
    wide = TWO_SECONDS
    return [
        Case(name="2x, 2 s", overload=2.0, target=wide),
        Case(name="10x, 2 s", overload=10.0, target=wide),
        Case(name="2x, 4 o", overload=2.0, target=tight),
        Case(name="10x, 4 o", overload=10.0, target=tight),
    ]


def _rows(rate_per_s: float, seed: int) -> dict[str, str]:
    return {"rate": str(round(rate_per_s)), "seed": str(seed)}


def _measure_plain(bench: Bench, case: Case, rate_per_s: float, seed: int) -> dict[str, Any]:
    """Without a gate a batch holds everything that has arrived, so its delays follow from the rate.

    When not even the first batch ends in time, what it holds is older than half of the run.
    """
    start_s = time.time()
    run = bench.start(plain(**_rows(rate_per_s, seed), start=repr(start_s)), windowed)
    run.for_seconds(PLAIN_S)
    batches = run.batches
    run.stop()
    seen = Sample(
        batches=[_plain_batch(batch, start_s, rate_per_s) for batch in batches],
        length_s=span_s(batches),
    )
    row = {"loss_ratio": 0.0, "batches": 0, "mean_delay_s": PLAIN_S / 2.0}
    row |= {"p95_delay_s": 0.95 * PLAIN_S, "p99_delay_s": 0.99 * PLAIN_S}
    row |= row_of([seen], case.target)
    return row | {"rate_per_s": rate_per_s, "efficiency": None}


def _plain_batch(batch: BatchProgress, start_s: float, rate_per_s: float) -> DeliveredBatch:
    low, high = (batch.sources[0][key]["position"] for key in ("startOffset", "endOffset"))
    arrivals_s = start_s + (low + (high - low) * np.array(DELAY_SHARES)) / rate_per_s
    return DeliveredBatch(
        gate="",
        seq=batch.batch_id,
        ended_s=batch.ended_s,
        duration_s=batch.duration_s,
        offered_tuples=high - low,
        kept_tuples=high - low,
        mean_delay_s=batch.ended_s - start_s - (low + high) / 2.0 / rate_per_s,
        quantile_delays_s=batch.ended_s - arrivals_s,
    )


def _report(
    cases: list[Case], results: dict[str, dict[str, Any]], machine: Calibration
) -> BenchReport:
    failures = [
        f"{case.name}, {law}: {what}"
        for case in cases
        for law, row in results[case.name].items()
        for what in _missed(law, row, case.target)
    ]
    return BenchReport(
        results=results,
        details={"calibration": asdict(machine)},
        tables=tuple(_table(case, results[case.name]) for case in cases),
        failures=tuple(failures),
    )


def _missed(law: str, row: dict[str, Any], target: Target) -> list[str]:
    """What was asked of a load manager and not reached."""
    mean_s, missed = row.get("mean_delay_s"), []
    if law in HELD:
        low_s, high_s = (share * target.delay_s for share in HELD[law])
        if mean_s is None:
            missed.append("nothing was delivered")
        elif not low_s <= mean_s <= high_s:
            missed.append(f"mean delay {mean_s:.2f} s: asked for {low_s:.2f} to {high_s:.2f} s")
    if law == "predictive" and row["efficiency"] is None:
        missed.append("no efficiency: too few batches, or o was measured longer than the best one")
    elif law == "predictive" and row["efficiency"] < LEAST_EFFICIENCY:
        missed.append(f"efficiency {row['efficiency']:.3f}: asked for {LEAST_EFFICIENCY}")
    held = mean_s is not None and mean_s <= 1.05 * target.delay_s
    if held and (row.get("bound_ratio") or 0.0) > BOUND_DOUBT:
        missed.append("goodput above the bound: measured wrongly")
    return missed


def _table(case: Case, rows: dict[str, Any]) -> Table:
    columns = ("load manager", "mean (s)", "p95 (s)", "p99 (s)", "loss", "kept/s", "efficiency")
    keys = ("mean_delay_s", "p95_delay_s", "p99_delay_s", "loss_ratio", "goodput_per_s")
    offered_per_s = next(iter(rows.values()))["rate_per_s"]
    return Table(
        title=f"{case.name}: {case.target}, {offered_per_s:,.0f} tuples/s offered",
        columns=columns,
        rows=[
            (law, *(row.get(key, "") for key in keys), row["efficiency"] or "")
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

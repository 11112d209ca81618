"""A paper's run on the real plant: its load over time, its cost trace, its background job.

A tuple of the paper stands for as many rows as make the paper's capacity this machine's: the load
is the same multiple of what the plant can take, second by second. Costs change by copying rows.
"""

import multiprocessing
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from spillway.hosts.spark.driver.progress import DeliveredBatch, delivered, summarise
from spillway.model import Target
from spillway_lab.benchmarks.calibration import calibrate_warm
from spillway_lab.benchmarks.spark_runs import Bench, Shape, gate, windowed
from spillway_lab.experiments.outcomes import Outcome
from spillway_lab.experiments.spark_spec import SparkSpec

Floats = npt.NDArray[np.float64]
WARM_S = 20.0  # of light load before the clock of the experiment starts
LIGHT = 0.2  # of the capacity
COPIES = 2  # of a row at nominal cost: the cost moves in steps of half the nominal one


class SparkPlantRuns:
    """One session, warmed up and calibrated once; runs follow one another."""

    def __init__(self) -> None:
        self._bench = Bench()
        target = Target(delay_s=2.0)
        machine = calibrate_warm(self._bench, self._shape(None), target)
        self.capacity_per_s = machine.capacity_per_s(target)

    def close(self) -> None:
        self._bench.close()

    def run(self, spec: SparkSpec) -> Outcome:
        begin_s = time.time() + WARM_S
        seconds = len(spec.offered)
        options = {f"manager.{name}": str(value) for name, value in spec.settings.items()}
        rows = gate(
            rate=self._profile(spec.offered),
            start=repr(begin_s - WARM_S),
            delay=f"{spec.target_s}s",
            period=f"{spec.period_s}s",
            manager=spec.law,
            **options,
        )
        run = self._bench.start(rows, self._shape(spec.cost, begin_s))
        stop_jobs = _background(spec.background, begin_s)
        run.for_seconds(begin_s + seconds + 2.0 - time.time())
        batches = [d for b in run.batches for d in delivered(b)]
        run.stop()
        stop_jobs()
        return _outcome(spec, [b for b in batches if b.ended_s > begin_s], begin_s)

    def _profile(self, offered: Floats) -> str:
        rates = [LIGHT * self.capacity_per_s, *(offered * self.capacity_per_s)]
        times = [0.0, *(WARM_S + np.arange(len(offered)))]
        pairs = zip(times, rates, strict=True)
        return ",".join(f"{at:g}:{max(1.0, rate):.0f}" for at, rate in pairs)

    def _shape(self, cost: Floats | None, begin_s: float = 0.0) -> Shape:
        copies = f"{COPIES}" if cost is None else _copies(cost, begin_s)

        def copied(rows: DataFrame) -> DataFrame:
            return windowed(rows.selectExpr("*", f"explode(sequence(1, {copies})) AS copy"))

        return copied


def _copies(cost: Floats, begin_s: float) -> str:
    """How often a row counts, by its arrival: one branch a stretch of equal cost."""
    counts = np.maximum(1, np.round(COPIES * cost)).astype(int)
    edges = np.flatnonzero(np.diff(counts)) + 1
    starts = [0, *edges.tolist()]
    branches = [
        f"WHEN _arrival >= timestamp_micros({round((begin_s + start) * 1e6)}) THEN {counts[start]}"
        for start in reversed(starts)
    ]
    return f"CASE {' '.join(branches)} ELSE {COPIES} END"


def _background(jobs: tuple[tuple[float, float], ...], begin_s: float) -> Callable[[], None]:
    """A process that takes `share` of one core at a time; gives the function that ends it."""
    processes = []
    for from_s, share in jobs:
        process = multiprocessing.get_context("spawn").Process(
            target=_burn, args=(begin_s + from_s, share), daemon=True
        )
        process.start()
        processes.append(process)

    def stop() -> None:
        for process in processes:
            process.kill()
            process.join()

    return stop


def _burn(from_s: float, share: float) -> None:
    """Busy on as many threads of execution as take `share` of two cores."""
    time.sleep(max(0.0, from_s - time.time()))
    while True:
        until_s = time.perf_counter() + min(1.0, 2.0 * share) * 0.05
        while time.perf_counter() < until_s:
            pass
        time.sleep(max(0.0, 1.0 - 2.0 * share) * 0.05)


def _outcome(spec: SparkSpec, batches: list[DeliveredBatch], begin_s: float) -> Outcome:
    seen = summarise(batches, spec.target_s)
    if seen is None:
        raise RuntimeError(f"{spec.law} delivered nothing on Spark")
    edges = np.arange(0.0, len(spec.offered) + 1e-9, spec.period_s)
    ended = np.array([b.ended_s - begin_s for b in batches])
    delays = np.array([b.mean_delay_s for b in batches])
    weights = np.array([float(b.kept_tuples) for b in batches])
    offered = np.array([float(b.offered_tuples) for b in batches])
    by_end = _by_period(ended, delays, weights, edges)
    kept_share = _by_period(ended, weights / np.maximum(offered, 1.0), offered, edges)
    unknown = np.full(len(edges) - 1, np.nan)
    return Outcome(
        accumulated_violation_s=seen.accumulated_violation_s,
        delayed_tuples=round(seen.delayed_tuples),
        max_overshoot_s=float(max(b.quantile_delays_s[0] for b in batches) - spec.target_s),
        loss_ratio=1.0 - seen.kept_tuples / max(1, seen.offered_tuples),
        mean_delay_s=seen.mean_s,
        mean_violation_s=seen.accumulated_violation_s / max(1, seen.kept_tuples),
        completed_tuples=seen.kept_tuples,
        period_s=spec.period_s,
        time_s=edges[1:],
        delay_s=by_end,
        delay_by_arrival_s=_by_period(ended - delays, delays, weights, edges),
        keep_fraction=kept_share,
        headroom=unknown,
        offered_per_s=np.repeat(spec.offered, max(1, round(1.0 / spec.period_s)))[: len(by_end)],
        queued_tuples=unknown,
        cost_s=unknown,
    )


def _by_period(times: Floats, values: Floats, weights: Floats, edges: Floats) -> Floats:
    """Weighted means by period; NaN where nothing fell into one."""
    place = np.clip(np.searchsorted(edges, times, side="left") - 1, 0, len(edges) - 2)
    totals = np.bincount(place, weights=weights, minlength=len(edges) - 1)
    sums = np.bincount(place, weights=weights * values, minlength=len(edges) - 1)
    means: Floats = np.where(totals > 0.0, sums / np.maximum(totals, 1e-12), np.nan)
    return means

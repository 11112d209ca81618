"""What one decision costs, law by law."""

import time
import warnings

import numpy as np

from spillway.load.laws import LAWS, make
from spillway.model import Backlog, BatchRecord, Measurement, Target
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

LIMIT_US = 20.0
_ROUNDS = 9


def run(setup: BenchSetup) -> BenchReport:
    """The fastest of several rounds over one varied journal: the figure without interruptions."""
    journal = _journal(setup.seed, 200 if setup.quick else 2000)
    results: dict[str, dict[str, float]] = {}
    for i, name in enumerate(LAWS):
        setup.progress(name, i / len(LAWS))
        results[name] = {"decide_us": round(min(_round_us(name, journal)), 3)}
    rows = [
        (name, found["decide_us"], found["decide_us"] <= LIMIT_US)
        for name, found in results.items()
    ]
    table = Table(title="One decision", columns=("law", "us", f"within {LIMIT_US:g} us"), rows=rows)
    return BenchReport(results=results, tables=(table,))


def _round_us(name: str, journal: list[Measurement]) -> list[float]:
    found = []
    for _ in range(_ROUNDS):
        law = make(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a gain outside its bound costs nothing to decide
            start = time.perf_counter()
            for measurement in journal:
                law.decide(measurement)
            found.append((time.perf_counter() - start) / len(journal) * 1e6)
    return found


def _journal(seed: int, periods: int) -> list[Measurement]:
    """Micro-batches under a load that swings between idle and three times the capacity."""
    rng = np.random.default_rng(seed)
    return [_measurement(k, rng) for k in range(periods)]


def _measurement(k: int, rng: np.random.Generator) -> Measurement:
    cost_s = 2e-6
    load = max(0.0, 1.5 + 1.5 * np.sin(k / 20.0) + rng.normal(0.0, 0.2))
    offered = int(load / cost_s)
    kept = min(offered, int(0.8 / cost_s))
    duration_s = (0.2 + cost_s * kept) * float(rng.lognormal(0.0, 0.1))
    age_s = duration_s / 2.0
    backlog = Backlog(
        pending_tuples=offered,
        mean_age_s=age_s,
        statistic_age_s=age_s,
        oldest_age_s=duration_s,
    )
    batch = BatchRecord(
        kept_tuples=kept, scanned_tuples=offered, duration_s=duration_s, ended_s=float(k)
    )
    return Measurement(
        time_s=float(k),
        period_s=1.0,
        target=Target(delay_s=2.0),
        offered_tuples=offered,
        admitted_tuples=kept,
        shed_tuples=offered - kept,
        completed_tuples=kept,
        queued_tuples=offered,
        queued_load_s=offered * cost_s,
        offered_load=load,
        admitted_load=kept * cost_s,
        cost_s=cost_s,
        delay_s=age_s + duration_s if kept else None,
        busy_s=duration_s,
        backlog=backlog,
        batches=(batch,),
    )


BENCHMARKS = (Benchmark(name="decide", title="One decision of every load manager", run=run),)

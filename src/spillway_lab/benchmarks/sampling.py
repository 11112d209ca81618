"""`sampling`: what a scanned position costs a worker, by the share that is kept."""

import time
from collections.abc import Callable

import numpy as np

from spillway.gate.sampling import PPM, Positions, UniformRule, keep_mask, kept_positions
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

POSITIONS = 1 << 20  # what the gate takes at once
SHARES_PPM = (900_000, 500_000, 200_000, 100_000, 10_000)


def run(setup: BenchSetup) -> BenchReport:
    """The fastest of several rounds, against a look at every position."""
    rounds = 5 if setup.quick else 30
    results: dict[str, dict[str, float]] = {}
    for place, keep_ppm in enumerate(SHARES_PPM):
        setup.progress(f"keeps {keep_ppm / PPM:.0%}", place / len(SHARES_PPM))
        rule = UniformRule(keep_ppm=keep_ppm, seed=setup.seed)
        results[f"{keep_ppm / PPM:g}"] = {
            "kept_positions_ns": _fastest_ns(kept_positions, rule, rounds),
            "every_position_ns": _fastest_ns(_by_mask, rule, rounds),
        }
    rows = [(share, *(round(ns, 2) for ns in found.values())) for share, found in results.items()]
    columns = ("share kept", "kept positions (ns)", "by looking at every position (ns)")
    table = Table(title="one scanned position, one core", columns=columns, rows=rows)
    return BenchReport(results=results, tables=(table,))


def _by_mask(start: int, stop: int, rule: UniformRule) -> Positions:
    return start + np.flatnonzero(keep_mask(start, stop, rule))


def _fastest_ns(
    choose: Callable[[int, int, UniformRule], Positions], rule: UniformRule, rounds: int
) -> float:
    took_s = []
    for number in range(rounds):
        start_s = time.perf_counter()
        choose(number * POSITIONS, (number + 1) * POSITIONS, rule)
        took_s.append(time.perf_counter() - start_s)
    return min(took_s) / POSITIONS * 1e9


BENCHMARKS = (
    Benchmark(name="sampling", title="what a scanned position costs, by the share kept", run=run),
)

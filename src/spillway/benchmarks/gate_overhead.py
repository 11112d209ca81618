"""`gate-overhead`: what the gate costs, against a bare Python source with the same rows.

The two take turns, a few batches each, so that drift of the machine falls on both alike. Batch
times are paired by turn; the interval is a bootstrap over the turns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway.benchmarks.session_profile import (
    PROFILE,
    SMALL_TUPLES,
    SPARKS_OWN,
    times_in_a_new_jvm,
)
from spillway.benchmarks.spark_runs import Bench, Shape, Source, gate, plain, stateless, windowed
from spillway.experiments.report import Table

Floats = npt.NDArray[np.float64]

BATCH_TUPLES = 400_000
# Many short turns: the same work takes a tenth more or less from one start of a query to the next.
TURN_BATCHES = 30
SKIPPED = 5  # of every turn: the query has just started again
MOST = 1.03  # of a bare source's batch time
SHAPES: dict[str, Shape] = {"windowed": windowed, "stateless": stateless}


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its 95 % interval."""

    ratio: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        return {"ratio": self.ratio, "low": self.low, "high": self.high}


def run(setup: BenchSetup) -> BenchReport:
    turns = 6 if setup.quick else 24
    bench = Bench()
    results: dict[str, Any] = {}
    try:
        for place, (name, shape) in enumerate(SHAPES.items()):
            setup.progress(f"{name}: warming up", place / len(SHAPES))
            for source in _sources().values():
                _turn(bench, source, shape, f"warm-{name}-{source.format}", 80)
            times = _alternate(bench, shape, name, turns, setup, place)
            results[name] = _compare(times, setup.seed)
    finally:
        bench.close()
    setup.progress("Spark's own settings", 0.95)
    settings = _settings_compared()
    return BenchReport(
        results=results | {"small_windowed_batch": settings},
        tables=(_table(results), _settings_table(settings)),
        failures=tuple(_missed(results)),
    )


def _missed(results: dict[str, Any]) -> Iterator[str]:
    for name, row in results.items():
        ratio = row["batch_time_ratio"]
        if ratio["ratio"] > MOST:
            yield (
                f"{name}: batches take {ratio['ratio']:.3f} ({ratio['low']:.3f} to"
                f" {ratio['high']:.3f}) of the bare source's: asked for {MOST} at most"
            )


def _sources() -> dict[str, Source]:
    """Both deliver batches of the same size from a backlog that never ends."""
    rows = {"rate": str(BATCH_TUPLES), "start": "0"}
    return {
        "bare": plain(**rows, batch=str(BATCH_TUPLES)),
        "gate": gate(
            **rows, manager="none", startingOffsets="earliest", max_batch=str(BATCH_TUPLES)
        ),
    }


def _alternate(
    bench: Bench, shape: Shape, name: str, turns: int, setup: BenchSetup, place: int
) -> dict[str, list[float]]:
    """Mean batch time of every turn, by source; who goes first alternates too."""
    times: dict[str, list[float]] = {label: [] for label in _sources()}
    for turn in range(turns):
        setup.progress(f"{name}: turn {turn + 1} of {turns}", (place + turn / turns) / len(SHAPES))
        order = list(_sources().items())
        for label, source in order if turn % 2 == 0 else reversed(order):
            batches = _turn(bench, source, shape, f"{name}-{label}", TURN_BATCHES)
            times[label].append(float(np.mean(batches[SKIPPED:])))
    return times


def _turn(bench: Bench, source: Source, shape: Shape, name: str, count: int) -> list[float]:
    run = bench.start(source, shape, name)
    batches = [b.duration_s for b in run.for_batches(count)]
    run.stop()
    return batches


def _compare(times: dict[str, list[float]], seed: int) -> dict[str, Any]:
    bare, gated = np.array(times["bare"]), np.array(times["gate"])
    batch_time = _ratio(gated, bare, seed)
    throughput = _ratio(bare, gated, seed)
    return {
        "batch_time_ratio": batch_time.as_json(),
        "throughput_ratio": throughput.as_json(),
        "bare_batch_s": float(bare.mean()),
        "gate_batch_s": float(gated.mean()),
        "batches": len(bare) * (TURN_BATCHES - SKIPPED),
        "tuples_per_batch": BATCH_TUPLES,
    }


def _ratio(above: Floats, below: Floats, seed: int) -> Ratio:
    """Of the mean times; a mean of ratios would lean upwards, whichever is on top."""
    rng = np.random.default_rng(seed)
    turns = rng.integers(0, len(above), (4000, len(above)))
    ratios = above[turns].mean(axis=1) / below[turns].mean(axis=1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return Ratio(ratio=float(above.mean() / below.mean()), low=float(low), high=float(high))


def _settings_compared() -> dict[str, float]:
    """A windowed batch with our session profile and with Spark's own settings, bare source."""
    profile_s, sparks_s = (times_in_a_new_jvm(s).small_s for s in (PROFILE, SPARKS_OWN))
    return {
        "profile_batch_s": profile_s,
        "spark_defaults_batch_s": sparks_s,
        "profile_ratio": profile_s / sparks_s,
    }


def _table(results: dict[str, Any]) -> Table:
    rows = []
    for name, row in results.items():
        for what in ("batch_time_ratio", "throughput_ratio"):
            r = row[what]
            rows.append(
                (name, what.replace("_", " "), r["ratio"], f"{r['low']:.3f}-{r['high']:.3f}")
            )
    columns = ("query", "gate against bare source", "ratio", "95 % interval")
    return Table(title="what the gate costs", columns=columns, rows=rows)


def _settings_table(settings: dict[str, float]) -> Table:
    return Table(
        title=f"windowed batch of {SMALL_TUPLES} tuples, bare source, new JVMs",
        columns=("session", "batch (s)"),
        rows=[
            ("our profile", settings["profile_batch_s"]),
            ("Spark's own settings", settings["spark_defaults_batch_s"]),
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="gate-overhead",
        title="batch time and throughput of the gate against a bare Python source",
        run=run,
    ),
)

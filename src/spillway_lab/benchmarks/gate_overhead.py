"""`gate-overhead`: what the gate costs, against a bare Python source with the same rows.

The two take turns batch by batch within one query, so that drift of the machine, the compiled code
and the collected garbage fall on both alike. So does what they share (offsets, the reader that
tasks unpickle, reports, commits): that part of the gate's price does not show. The interval is a
bootstrap over stretches of pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.report import Table
from spillway_lab.benchmarks.probed_gate import LIKE
from spillway_lab.benchmarks.probed_run import probing, read_turns
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.session_profile import (
    PROFILE,
    SMALL_TUPLES,
    SPARKS_OWN,
    times_in_a_new_jvm,
)
from spillway_lab.benchmarks.spark_runs import Bench, Shape, gate, stateless, windowed

Floats = npt.NDArray[np.float64]

BATCH_TUPLES = 400_000
PAIRS, QUICK_PAIRS = 400, 100
WARM_PAIRS = 60
STRETCH = 10  # pairs that are resampled together: neighbours are alike
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
    pairs = QUICK_PAIRS if setup.quick else PAIRS
    bench = Bench()
    results: dict[str, Any] = {}
    try:
        for place, (name, shape) in enumerate(SHAPES.items()):

            def progress(done: float, name: str = name, place: int = place) -> None:
                setup.progress(f"{name}: {pairs} pairs of batches", (place + done) / len(SHAPES))

            gated_s, bare_s = _pairs(bench, shape, pairs, progress)
            results[name] = _compare(gated_s, bare_s, setup.seed)
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


def _pairs(
    bench: Bench, shape: Shape, pairs: int, progress: Callable[[float], None]
) -> tuple[Floats, Floats]:
    """Times of the gate's batches, and of the bare source's with the same rows right after them."""
    rows = {"rate": str(BATCH_TUPLES), "start": "0"}  # a backlog that never ends
    source = probing(
        gate(**rows, manager="none", startingOffsets="earliest", max_batch=str(BATCH_TUPLES)), LIKE
    )
    run, wanted = bench.start(source, shape), 2 * (WARM_PAIRS + pairs) + 2
    for share in np.linspace(0.1, 1.0, 10):
        batches = run.for_batches(int(share * wanted))
        progress(share)
    run.stop()
    rounds = read_turns(batches, [LIKE]).rounds[WARM_PAIRS:]
    took_s = np.array([[turn.took_s for turn in pair] for pair in rounds])
    return took_s[:, 0], took_s[:, 1]


def _compare(gated_s: Floats, bare_s: Floats, seed: int) -> dict[str, Any]:
    return {
        "batch_time_ratio": _ratio(gated_s, bare_s, seed).as_json(),
        "throughput_ratio": _ratio(bare_s, gated_s, seed).as_json(),
        "bare_batch_s": float(bare_s.mean()),
        "gate_batch_s": float(gated_s.mean()),
        "batches": len(bare_s) + len(gated_s),
        "tuples_per_batch": BATCH_TUPLES,
    }


def _ratio(above: Floats, below: Floats, seed: int) -> Ratio:
    """Of the mean times; a mean of ratios would lean upwards, whichever is on top."""
    rng = np.random.default_rng(seed)
    sums = [
        times[: len(times) // STRETCH * STRETCH].reshape(-1, STRETCH).sum(axis=1)
        for times in (above, below)
    ]
    picked = rng.integers(0, len(sums[0]), (4000, len(sums[0])))
    ratios = sums[0][picked].sum(axis=1) / sums[1][picked].sum(axis=1)
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

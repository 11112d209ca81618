"""`session`: what the settings of the session profile gain, each in a JVM of its own.

What a JVM has compiled for one session would speed up the next, so every session has a new one and
the same warm-up.
"""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import numpy as np

from spillway.hosts.spark.session.session import JAVA_OPTIONS, LARGE_PAGES
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.spark_runs import Bench, plain, windowed

LARGE_TUPLES = 1_000_000
SMALL_TUPLES = 2000  # next to nothing: what remains is the fixed price
WARM_S, MEASURED_S = 25.0, 12.0  # Spark's own settings: seconds a batch


@dataclass(frozen=True, kw_only=True)
class Session:
    use_profile: bool = True
    config: Mapping[str, str] = field(default_factory=dict)


PROFILE = Session()
SPARKS_OWN = Session(use_profile=False)
WITHOUT: dict[str, Session] = {
    name: Session(config={key: value})
    for name, key, value in (
        ("large pages", "spark.driver.extraJavaOptions", JAVA_OPTIONS.removesuffix(LARGE_PAGES)),
        ("partition evaluators", "spark.sql.execution.usePartitionEvaluator", "false"),
        ("Unix sockets", "spark.python.unix.domain.socket.enabled", "false"),
        ("fixed plans", "spark.sql.adaptive.enabled", "true"),
    )
}


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of a windowed batch: mean of the large ones, median of the small ones."""

    large_s: float
    small_s: float


def run(setup: BenchSetup) -> BenchReport:
    sessions = {"profile": PROFILE}
    sessions |= {f"without {name}": session for name, session in WITHOUT.items()}
    sessions |= {"Spark's own": SPARKS_OWN}
    rounds = 1 if setup.quick else 2
    seen: dict[str, list[Times]] = {name: [] for name in sessions}
    for turn in range(rounds):
        order = list(sessions.items())
        for place, (name, session) in enumerate(order if turn % 2 == 0 else reversed(order)):
            setup.progress(f"{name}, round {turn + 1}", (turn + place / len(order)) / rounds)
            seen[name].append(times_in_a_new_jvm(session))
    results = {
        name: {
            "large_batch_s": float(np.mean([t.large_s for t in times])),
            "small_batch_s": float(np.mean([t.small_s for t in times])),
            "large_batch_s_by_round": [t.large_s for t in times],
            "small_batch_s_by_round": [t.small_s for t in times],
        }
        for name, times in seen.items()
    }
    return BenchReport(results=results, tables=(_table(results),))


def times_in_a_new_jvm(session: Session) -> Times:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_times, session).result()


def _times(session: Session) -> Times:
    bench = Bench(use_profile=session.use_profile, config=session.config)
    try:
        large = _durations_s(bench, LARGE_TUPLES)
        return Times(
            large_s=float(np.mean(large)),
            small_s=float(np.median(_durations_s(bench, SMALL_TUPLES))),
        )
    finally:
        bench.close()


def _durations_s(bench: Bench, tuples: int) -> list[float]:
    run = bench.start(plain(rate=str(tuples), start="0", batch=str(tuples)), windowed)
    run.for_batches(1)
    run.for_seconds(WARM_S)
    batches = run.for_seconds(MEASURED_S)
    run.stop()
    return [batch.duration_s for batch in batches]


def _table(results: dict[str, Any]) -> Table:
    base = results["profile"]
    return Table(
        title=f"windowed batches of {LARGE_TUPLES:,} and {SMALL_TUPLES:,} tuples, bare source",
        columns=("session", "large (s)", "of the profile's", "small (s)", "of the profile's"),
        rows=[
            (
                name,
                row["large_batch_s"],
                row["large_batch_s"] / base["large_batch_s"],
                row["small_batch_s"],
                row["small_batch_s"] / base["small_batch_s"],
            )
            for name, row in results.items()
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="session",
        title="what the settings of the session profile gain, each in a JVM of its own",
        run=run,
    ),
)

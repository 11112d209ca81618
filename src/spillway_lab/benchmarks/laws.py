"""`laws`: does every load manager hold its target in a flow on Spark, at twice the capacity?

The price of a batch is measured just before each case and again after it, by batches of fixed size
in the same flow: o, c and s, and from them what the best uniform shedder could keep. Then every law
starts anew, in a JVM that is warm, with twice the capacity offered from its first second on.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from scipy.optimize import nnls

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.load import oracle
from spillway.model import Prices, Target
from spillway.report import Table
from spillway_lab.benchmarks.flow_runs import opened, started, watch
from spillway_lab.benchmarks.laws_judged import Load, Outcome, judged, outcome
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

Manager = str | dict[str, object]
LAWS = ("predictive", "ctrl", "baseline", "dissp", "seamless", "aloma", "aurora")
OVERLOAD = 2.0
SETTLE_S, SLOW_SETTLE_S = 30.0, 90.0
SLOW = ("aloma",)  # moves by steps of one per cent: its paper's design
AS_IT_IS = ("aurora",)  # open loop: the delay appears nowhere in it
MEASURED_S, SLOW_MEASURED_S = 30.0, 60.0  # a slow law's swing takes 15 to 25 s
BATCH_S = 0.25  # what the tuples of a small calibrating batch take, about
FIRST_GUESS = Prices(fixed_s=0.2, kept_s=4e-7, scanned_s=1e-8)  # of one query on two cores


@dataclass(frozen=True, kw_only=True)
class Case:
    """Which queries run, with which target, in which class."""

    name: str
    targets: Mapping[str, str]  # by class
    priorities: Mapping[str, int]
    queries: Mapping[str, str]  # query -> class

    def flow(self, law: Manager, rate_per_s: Mapping[str, float], **options: object) -> Flow:
        return Flow.model_validate(
            {
                "streams": {
                    f"{query}_events": {
                        "source": "synthetic",
                        "options": {"rate": round(rate_per_s[query]), **options},
                        "event_time": "event_time",
                        "watermark": "5s",
                    }
                    for query in self.queries
                },
                "classes": {
                    name: {"delay": delay, "priority": self.priorities[name], "manager": law}
                    for name, delay in self.targets.items()
                },
                "queries": {query: self._query(query) for query in self.queries},
            }
        )

    def _query(self, query: str) -> dict[str, object]:
        return {
            "class": self.queries[query],
            "mode": "update",
            "sink": {"type": "noop"},
            "combine": False,
            "sql": "SELECT window(event_time, '10 seconds') AS period, key, avg(value) AS mean"
            f" FROM {query}_events GROUP BY window(event_time, '10 seconds'), key",
        }

    def target(self, query: str) -> Target:
        return Target.parse(self.targets[self.queries[query]])


CASES = (
    Case(name="one query", targets={"all": "2s"}, priorities={"all": 1}, queries={"one": "all"}),
    Case(
        name="two queries",
        targets={"all": "2s"},
        priorities={"all": 1},
        queries={"one": "all", "two": "all"},
    ),
    Case(
        name="two classes",
        targets={"gold": "2s", "bronze": "3s"},
        priorities={"gold": 3, "bronze": 1},
        queries={"one": "gold", "two": "bronze"},
    ),
)


def batches_in(
    case: Case,
    law: Manager,
    spark: SparkSession,
    rates: Mapping[str, float],
    seconds: float,
    **options: object,
) -> tuple[float, dict[str, list[DeliveredBatch]]]:
    """When a run began, and what its queries delivered."""
    flow = case.flow(law, rates, **options)
    with started(flow, spark) as application:
        began_s = time.time()
        watch(application, began_s + seconds)
        found = list(application.batches)
    return began_s, {q: [b for b in found if b.gate.startswith(f"{q}/")] for q in case.queries}


def calibrated(case: Case, spark: SparkSession, known: Prices, seconds: float) -> Prices:
    """o, c and s by batches of fixed size: few tuples, many tuples, many scanned for few kept."""
    few = min(max(100_000, round(BATCH_S / known.kept_s)), 5_000_000)
    rates = dict.fromkeys(case.queries, min(9e7, 30.0 * few))
    points: list[tuple[int, int, float]] = []
    for size, share in ((few, 1.0), (4 * few, 1.0), (few, 0.1)):
        law: Manager = {"law": "fixed", "keep_fraction": share}
        sizes = {"first_batch": size, "max_batch": size}
        _, found = batches_in(case, law, spark, rates, seconds, **sizes)
        points += [one for batches in found.values() for one in _points(batches)]
    return solved(points)


def _points(batches: Sequence[DeliveredBatch]) -> list[tuple[int, int, float]]:
    """Medians over pieces of a run: single batches are too uneven."""
    settled = [b for b in batches[3:] if b.kept_tuples > 0]
    pieces = [settled[i : i + 5] for i in range(0, len(settled), 5)]
    return [
        (
            round(float(np.median([b.kept_tuples for b in piece]))),
            round(float(np.median([b.offered_tuples for b in piece]))),
            float(np.median([b.duration_s for b in piece])),
        )
        for piece in pieces
        if len(piece) >= 3
    ]


def solved(points: Sequence[tuple[int, int, float]]) -> Prices:
    """Least squares of relative errors, nothing below zero."""
    kept, scanned, took_s = np.array(points, dtype=float).T
    rows = np.stack([np.ones_like(kept), kept, scanned]).T / took_s[:, None]
    scale = np.abs(rows).max(axis=0)
    found, _ = nnls(rows / scale, np.ones_like(took_s))
    o, c, s = found / scale
    return Prices(fixed_s=max(0.01, float(o)), kept_s=max(1e-9, float(c)), scanned_s=float(s))


def capacity_per_s(prices: Prices, target: Target) -> float:
    """What fits into batches as long as the target allows, everything kept."""
    room = 1.0 - prices.fixed_s / oracle.uniform_length_s(target)
    return room / (prices.kept_s + prices.scanned_s)


def _of_case(case: Case, setup: BenchSetup, done: float) -> tuple[dict[str, Any], Any]:
    laws = LAWS[:2] if setup.quick else LAWS
    warm_s, calibrate_s = (40.0, 10.0) if setup.quick else (60.0, 12.0)
    with opened(case.flow("none", dict.fromkeys(case.queries, 1.0))) as spark:
        setup.progress(f"{case.name}: warming up", done)
        guess = {q: OVERLOAD * capacity_per_s(FIRST_GUESS, case.target(q)) for q in case.queries}
        batches_in(case, "predictive", spark, guess, warm_s)
        setup.progress(f"{case.name}: calibrating", done)
        first = calibrated(case, spark, FIRST_GUESS, calibrate_s)
        before = calibrated(case, spark, first, calibrate_s)
        rates = {q: OVERLOAD * capacity_per_s(before, case.target(q)) for q in case.queries}
        runs = {}
        for place, law in enumerate(laws):
            setup.progress(f"{case.name}: {law}", done + 0.3 * place / len(laws))
            seconds = SLOW_SETTLE_S + SLOW_MEASURED_S if law in SLOW else SETTLE_S + MEASURED_S
            runs[law] = batches_in(case, law, spark, rates, seconds)
        setup.progress(f"{case.name}: calibrating again", done + 0.3)
        after = calibrated(case, spark, before, calibrate_s)
    prices = mean_of(before, after)
    found: dict[str, dict[str, Outcome]] = {law: {} for law in laws}
    for law, (began_s, batches) in runs.items():
        settle_s = SLOW_SETTLE_S if law in SLOW else SETTLE_S
        for query, own in batches.items():
            load = Load(target=case.target(query), rate_per_s=rates[query], prices=prices)
            found[law][query] = outcome(own, began_s, settle_s, load)
    details = {
        "prices_before": _shown(before),
        "prices_after": _shown(after),
        "rates_per_s": rates,
        "queries": {law: {q: asdict(o) for q, o in by.items()} for law, by in found.items()},
    }
    return {law: judged(by) for law, by in found.items()}, details


def mean_of(one: Prices, other: Prices) -> Prices:
    return replace(
        one,
        fixed_s=(one.fixed_s + other.fixed_s) / 2,
        kept_s=(one.kept_s + other.kept_s) / 2,
        scanned_s=(one.scanned_s + other.scanned_s) / 2,
    )


def _shown(prices: Prices) -> dict[str, float]:
    return {"o_s": prices.fixed_s, "c_s": prices.kept_s, "s_s": prices.scanned_s}


def run(setup: BenchSetup) -> BenchReport:
    cases = [case for case in CASES if setup.only in (None, case.name)]
    cases = cases[:1] if setup.quick else cases
    results, details = {}, {}
    for place, case in enumerate(cases):
        results[case.name], details[case.name] = _of_case(case, setup, place / len(cases))
    rows = [
        (case, law, o["delay_s"], o["target_s"], o["kept_ratio"], o["efficiency"], o["settled_s"])
        for case, by in results.items()
        for law, o in by.items()
    ]
    columns = ("case", "law", "mean delay (s)", "target (s)", "kept", "efficiency", "settled (s)")
    failures = tuple(
        f"{case}, {law}: delay {o['delay_s']:.2f} s of {o['target_s']:g} s, efficiency"
        f" {o['efficiency']:.2f}"
        for case, by in results.items()
        for law, o in by.items()
        if law not in AS_IT_IS and not o["holds"]
    )
    title = "Every law in flows on Spark, at twice the capacity"
    table = Table(title=title, columns=columns, rows=rows)
    return BenchReport(results=results, tables=(table,), details=details, failures=failures)


BENCHMARKS = (
    Benchmark(
        name="laws",
        title="Every law in flows on Spark, at twice the capacity",
        run=run,
        parts=tuple(case.name for case in CASES),
    ),
)

"""The Spark half of `roadmap`: one fused plan, two queries, a split with measured costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame

from spillway.costs.by_query import QueryCosts, SeenBatch, fit_query_costs, seen_batch
from spillway.gate.masks import COLUMN, predicate
from spillway.gate.roadmap import Roadmap, load_of, roadmap
from spillway.hosts.spark.driver.progress import BatchProgress, delivered, summarise
from spillway.model import Target
from spillway_lab.benchmarks.registry import BenchSetup
from spillway_lab.benchmarks.spark_runs import Bench, gate

TARGET = Target(delay_s=2.0)
OVERLOADS = (2.0, 4.0)
HASHES = 8  # rounds of SHA-256 make the expensive query
EVERYTHING = "alerts:1000000,scores:1000000"
CALIBRATION = (  # masks, most tuples of a batch
    (EVERYTHING, 4_000),
    (EVERYTHING, 60_000),
    ("alerts:1000000,scores:0", 60_000),
    ("alerts:0,scores:1000000", 60_000),
)
CALIBRATION_RATE_PER_S = 2_000_000  # more than any of these runs keeps


def fused(rows: DataFrame) -> DataFrame:
    """Both queries in one plan: a row is repeated for the queries whose bit is set."""
    digest = "CAST(s.value AS STRING)"
    for _ in range(HASHES):
        digest = f"sha2({digest}, 256)"
    rows.createOrReplaceTempView("roadmap_stream")
    return rows.sparkSession.sql(
        f"SELECT q.query, CASE q.query WHEN 0 THEN s.value * 2 ELSE length({digest}) END AS result"
        " FROM roadmap_stream AS s JOIN (VALUES (0), (1)) AS q(query)"
        f" ON {predicate('q.query', f's.{COLUMN}')}"
    )


def run_spark(
    setup: BenchSetup, weights: Mapping[str, float]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Costs first, then both policies by turns: what the machine does meanwhile falls on both."""
    warm_s, measured_s, rounds = (3.0, 8.0, 1) if setup.quick else (4.0, 12.0, 2)
    bench = Bench()
    try:
        setup.progress("Spark: warming up", 0.1)
        _masked_batches(bench, EVERYTHING, 60_000, 20.0)
        setup.progress("Spark: costs of the queries", 0.2)
        costs = _measured_costs(bench, 5.0 if setup.quick else 8.0)
        rows = []
        for place, overload in enumerate(OVERLOADS[:1] if setup.quick else OVERLOADS):
            setup.progress(f"Spark: {overload:g}x", 0.4 + 0.3 * place)
            rate_per_s = _rate_per_s(costs, overload)
            plan = roadmap([costs.inflow(rate_per_s, weights)])
            batches: dict[str, list[list[BatchProgress]]] = {}
            for _ in range(rounds):
                for policy, options in _policies(costs, weights).items():
                    given = {"rate": str(round(rate_per_s)), "seed": str(setup.seed), **options}
                    measured = _run(bench, given, warm_s, measured_s)
                    batches.setdefault(policy, []).append(measured)
            rows += [
                _row(policy, overload, plan, runs, weights) | {"rate_per_s": rate_per_s}
                for policy, runs in batches.items()
            ]
    finally:
        bench.close()
    return rows, {"costs": asdict(costs)}


def _free_share(costs: QueryCosts) -> float:
    """Of every second: what batches of the best length, D = 2 y / 3, leave for tuples."""
    return max(0.1, 1.0 - costs.fixed_s / (TARGET.delay_s / 1.5))


def _rate_per_s(costs: QueryCosts, overload: float) -> float:
    """So many times what the whole plan can keep."""
    ones = dict.fromkeys(costs.query_s, 1.0)
    return overload * _free_share(costs) / load_of([costs.inflow(1.0, ones)])


def _policies(costs: QueryCosts, weights: Mapping[str, float]) -> dict[str, dict[str, str]]:
    """The gate's options: the same plan and load manager, the rows shared out in two ways."""
    return {"uniform": {"masks": EVERYTHING}, "roadmap": {"split": costs.split(weights).text}}


def _run(
    bench: Bench, options: Mapping[str, str], warm_s: float, measured_s: float
) -> list[BatchProgress]:
    """The gate's own load manager holds the target."""
    run = bench.start(gate(**options, delay=f"{TARGET.delay_s}s"), fused)
    run.for_batches(3)
    run.for_seconds(warm_s)
    batches = run.for_seconds(measured_s)
    run.stop()
    return batches


def _row(
    policy: str,
    overload: float,
    plan: Roadmap,
    runs: Sequence[list[BatchProgress]],
    weights: Mapping[str, float],
) -> dict[str, Any]:
    span_s = sum(batches[-1].ended_s - batches[0].started_s for batches in runs if batches)
    everything = [batch for batches in runs for batch in batches]
    seen = [found for batch in everything if (found := seen_batch(batch)) is not None]
    per_s = {name: sum(b.seen_tuples[name] for b in seen) / span_s for name in weights}
    delays = summarise([d for b in everything for d in delivered(b)], TARGET.delay_s)
    offered = max(1, delays.offered_tuples if delays else 0)
    shed_load = plan.load - plan.load / overload
    drops = plan.uniform(shed_load) if policy == "uniform" else plan.drops(shed_load)
    return {
        "policy": policy,
        "overload": overload,
        "keep": {name: sum(b.seen_tuples[name] for b in seen) / offered for name in weights},
        "predicted_worth_per_s": plan.worth_per_s - drops.loss_per_s,
        "worth_per_s": sum(weights[name] * per_s[name] for name in weights),
        "results_per_s": per_s,
        "mean_delay_s": None if delays is None else delays.mean_s,
        "target_s": TARGET.delay_s,
        "batches": len(seen),
    }


def _measured_costs(bench: Bench, seconds: float) -> QueryCosts:
    found = [b for masks, most in CALIBRATION for b in _masked_batches(bench, masks, most, seconds)]
    return fit_query_costs(found)


def _masked_batches(bench: Bench, masks: str, most: int, seconds: float) -> list[SeenBatch]:
    """Batches of a run in which `most` binds, without the first ones."""
    options = {"rate": str(CALIBRATION_RATE_PER_S), "masks": masks, "max_batch": str(most)}
    run = bench.start(gate(**options, delay="10s"), fused)
    run.for_batches(4)
    batches = run.for_seconds(seconds)
    run.stop()
    return [found for batch in batches if (found := seen_batch(batch)) is not None]

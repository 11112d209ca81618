"""`templates`: what many queries cost as one plan, against as many separate Spark queries.

Every run gets batches of the same size from a backlog that never ends. A row carries a key drawn
evenly, and fan-out f means that f instances ask for each key, so that every row meets f of them;
'all' asks for no key, so that every row meets every instance.
"""

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from spillway.hosts.spark.worker.instances import fused_frame
from spillway.report import Table
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import open_store
from spillway.templates.templates import Template
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.spark_runs import Bench, gate

BATCH_TUPLES = 20_000
WARM_UP_BATCHES = 40  # before the first case: the JVM keeps getting faster for a while
BATCHES = 12
MANY_MATCHES = 50_000_000  # of a batch: it takes tens of seconds, so a few batches must do
SEPARATE = (1, 2, 4, 8)

_AGGREGATE = "window(event_time, '10 seconds') AS period, count(*) AS n, avg(value) AS mean"
_GROUPED = "GROUP BY window(event_time, '10 seconds')"
BY_KEY = f"SELECT {_AGGREGATE} FROM ticks WHERE key = :key AND value >= :low {_GROUPED}"
OF_ALL = f"SELECT {_AGGREGATE} FROM ticks WHERE value >= :low {_GROUPED}"


@dataclass(frozen=True, kw_only=True)
class Case:
    instances: int
    fan_out: int
    by_key: bool = True

    @property
    def keys(self) -> int:
        return self.instances // self.fan_out if self.by_key else 1

    def rows(self) -> list[dict[str, Any]]:
        if not self.by_key:
            return [{"low": 0.0} for _ in range(self.instances)]
        return [{"key": i // self.fan_out, "low": 0.0} for i in range(self.instances)]

    @property
    def matches(self) -> int:
        return BATCH_TUPLES * self.fan_out

    def as_json(self, batch_s: float) -> dict[str, Any]:
        return {
            "instances": self.instances,
            "fan_out": self.fan_out if self.by_key else "all",
            "batch_s": batch_s,
            "rows_per_s": BATCH_TUPLES / batch_s,
        }


def run(setup: BenchSetup) -> BenchReport:
    bench, results = Bench(), []
    cases, counts = _cases(setup), SEPARATE[:2] if setup.quick else SEPARATE
    batches = 6 if setup.quick else BATCHES
    try:
        _measure(bench, cases[0], 10 if setup.quick else WARM_UP_BATCHES)
        for place, case in enumerate(cases):
            setup.progress(f"{case.instances} instances", place / (len(cases) + len(counts)))
            wanted = 3 if case.matches > MANY_MATCHES else batches
            results.append(case.as_json(_measure(bench, case, wanted)))
        separate = []
        for place, count in enumerate(counts):
            setup.progress(f"{count} queries", (len(cases) + place) / (len(cases) + len(counts)))
            separate.append({"queries": count, "batch_s": _separate(bench, count, batches)})
    finally:
        bench.close()
    ratios = _ratios(results)
    return BenchReport(
        results=results,
        tables=(_table(results, ratios), _separate_table(separate)),
        details={"separate": separate, "batch_tuples": BATCH_TUPLES, "against_one": ratios},
    )


def _cases(setup: BenchSetup) -> list[Case]:
    sizes = (1, 100, 1_000) if setup.quick else (1, 10, 100, 1_000, 10_000)
    cases = []
    for size in sizes:
        cases += [Case(instances=size, fan_out=f) for f in (1, 8) if f <= size]
        cases.append(Case(instances=size, fan_out=size, by_key=False))
    return cases


def _measure(bench: Bench, case: Case, batches: int) -> float:
    """Median time of a batch with all instances in one plan."""
    with tempfile.TemporaryDirectory(prefix="spillway-bench-") as folder:
        template = Template.parse("q", BY_KEY if case.by_key else OF_ALL)
        store = open_store(Path(folder) / "instances.jsonl", template, case.rows())
        run = bench.start(_source(case.keys, store), lambda rows: fused(rows, template, store))
        try:
            return _median(run.for_batches(batches))
        finally:
            run.stop()


def fused(rows: DataFrame, template: Template, store: InstanceStore) -> DataFrame:
    rows.withWatermark("event_time", "5 seconds").createOrReplaceTempView("ticks")
    return fused_frame(rows.sparkSession, template, store)


def _separate(bench: Bench, count: int, batches: int) -> float:
    """Median time of a batch when every instance is a Spark query of its own."""
    template = Template.parse("q", BY_KEY)

    def alone(rows: DataFrame, key: int) -> DataFrame:
        rows.withWatermark("event_time", "5 seconds").createOrReplaceTempView("ticks")
        return rows.sparkSession.sql(template.instantiated({"key": key, "low": 0.0}))

    runs = [bench.start(_source(count), partial(alone, key=number)) for number in range(count)]
    try:
        return float(np.median([_median(run.for_batches(batches)) for run in runs]))
    finally:
        for run in runs:
            run.stop()


def _source(keys: int, store: InstanceStore | None = None) -> Any:
    stamped = {} if store is None else {"instances": str(store.path)}
    return gate(
        rate=str(BATCH_TUPLES),
        columns=f"key key({keys}, 0), value double(0, 1), event_time time",
        start="0",
        manager="none",
        startingOffsets="earliest",
        first_batch=str(BATCH_TUPLES),
        max_batch=str(BATCH_TUPLES),
        **stamped,
    )


def _median(batches: list[Any]) -> float:
    return float(np.median([batch.duration_s for batch in batches[len(batches) // 3 :]]))


def _ratios(results: list[dict[str, Any]]) -> dict[str, float]:
    """Batch time of every case over that of one instance at the same input."""
    one = results[0]["batch_s"]
    return {f"{r['instances']} x {r['fan_out']}": r["batch_s"] / one for r in results}


def _table(results: list[dict[str, Any]], ratios: dict[str, float]) -> Table:
    rows = [
        (
            r["instances"],
            str(r["fan_out"]),
            f"{r['batch_s']:.3f}",
            f"{ratio:.2f}",
            f"{r['rows_per_s']:,.0f}",
        )
        for r, ratio in zip(results, ratios.values(), strict=True)
    ]
    columns = ("instances", "fan-out", "batch s", "against one", "rows/s")
    return Table(title=f"one plan, {BATCH_TUPLES:,} rows a batch", columns=columns, rows=rows)


def _separate_table(separate: list[dict[str, Any]]) -> Table:
    rows = [(row["queries"], f"{row['batch_s']:.3f}") for row in separate]
    return Table(title="separate Spark queries", columns=("queries", "batch s"), rows=rows)


BENCHMARKS = (
    Benchmark(
        name="templates",
        title="batch time of 1 to 10,000 queries as one plan, and as separate queries",
        run=run,
    ),
)

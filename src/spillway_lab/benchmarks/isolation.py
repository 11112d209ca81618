"""`isolation`: does a burst of the lowest class cost the highest one anything?"""

import time
from dataclasses import asdict
from typing import Any

from spillway.flow.flow import Flow
from spillway.hosts.spark.session.pools import cores_here
from spillway.report import Table
from spillway_lab.benchmarks.flow_runs import ClassFigures, figures_of, running, watch
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

LIGHT_PER_S = 20_000
BURSTING_PER_S_AND_CORE = 250_000  # a core takes one to two million a second of this query
BURST_FACTOR = 12
AFTER_S = 10.0  # measured after the burst: what it left behind is part of it
CLASSES = {
    "gold": {"priority": 6, "delay": "p99 2s"},
    "silver": {"priority": 3, "delay": "3s"},
    "bronze": {"priority": 1, "delay": "4s"},
}
WITHIN_AT_LEAST = 0.994


def flow_of(warm_s: float, burst_s: float, seed: int, cores: int) -> Flow:
    low = BURSTING_PER_S_AND_CORE * cores
    burst = f"0:{low},{warm_s:.0f}:{BURST_FACTOR * low},{warm_s + burst_s:.0f}:{low}"
    rates: dict[str, str | int] = {"gold": LIGHT_PER_S, "silver": LIGHT_PER_S, "bronze": burst}
    return Flow.model_validate(
        {
            "streams": {
                f"{name}_events": {
                    "source": "synthetic",
                    "options": {"rate": rates[name], "seed": seed + place},
                    "event_time": "event_time",
                    "watermark": "5s",
                }
                for place, name in enumerate(CLASSES)
            },
            "classes": CLASSES,
            "queries": {
                f"{name}_totals": {
                    "class": name,
                    "mode": "update",
                    "sink": {"type": "noop"},
                    "combine": False,
                    "sql": "SELECT window(event_time, '10 seconds') AS period, key,"
                    f" avg(value) AS mean FROM {name}_events"
                    " GROUP BY window(event_time, '10 seconds'), key",
                }
                for name in CLASSES
            },
        }
    )


def run(setup: BenchSetup) -> BenchReport:
    """Warm up at the usual rates, then the burst; measured by the monitor from its first second."""
    warm_s, burst_s = (30.0, 15.0) if setup.quick else (60.0, 30.0)
    flow = flow_of(warm_s, burst_s, setup.seed, cores_here())  # all, as the default master
    setup.progress("starting", 0.02)
    with running(flow) as application:
        began_s = time.time()
        setup.progress("warming up", 0.1)
        watch(application, began_s + warm_s)
        setup.progress(f"bronze bursts to {BURST_FACTOR} times its rate", 0.5)
        watch(application, began_s + warm_s + burst_s)
        setup.progress("after the burst", 0.9)
        watch(application, began_s + warm_s + burst_s + AFTER_S)
        from_s, to_s = began_s + warm_s, time.time()
        seen = {name: figures_of(application, name, from_s, to_s) for name in CLASSES}
    return BenchReport(
        results={name: asdict(figures) for name, figures in seen.items()},
        details={"classes": CLASSES, "burst_factor": BURST_FACTOR, "burst_s": burst_s},
        tables=(_table(seen),),
        failures=tuple(_failures(seen)),
    )


def _failures(seen: dict[str, ClassFigures]) -> list[str]:
    gold, bronze = seen["gold"], seen["bronze"]
    problems = []
    if gold.within_target_ratio < WITHIN_AT_LEAST:
        problems.append(
            f"{gold.within_target_ratio:.2%} of gold's tuples came within its target:"
            f" {WITHIN_AT_LEAST:.1%} are asked for"
        )
    if gold.shed_tuples:
        problems.append(f"gold lost {gold.shed_tuples} tuples")
    if not bronze.shed_tuples:
        problems.append("bronze lost nothing: its burst did not overload the machine")
    return problems


def _table(seen: dict[str, ClassFigures]) -> Table:
    rows: list[tuple[Any, ...]] = [
        (
            name,
            CLASSES[name]["delay"],
            f"{f.within_target_ratio:.2%}",
            f.shed_tuples,
            f.offered_tuples,
            f.p99_delay_s,
            f.mean_batch_s,
            f"{f.busy_ratio:.0%}",
        )
        for name, f in seen.items()
    ]
    columns = ("class", "target", "within", "shed", "offered", "p99 (s)", "batch (s)", "busy")
    return Table(title="from the first second of the burst", columns=columns, rows=rows)


BENCHMARKS = (
    Benchmark(
        name="isolation",
        title="a burst of the lowest class on Spark: what the highest one notices of it",
        run=run,
        plants=("spark",),
    ),
)

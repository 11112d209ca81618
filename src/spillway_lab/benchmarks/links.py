"""`links`: what exactly once costs. One query into a topic, in turns with either sink.

Rows per second: the stream brings more than either can take, and the gate sheds what would come
late. Delay: the stream brings little, so that only the batch itself is measured.
"""

import os
import time
from typing import Any
from uuid import uuid4

import numpy as np
from pyspark.sql import SparkSession

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.report import Table
from spillway_lab.benchmarks.flow_runs import figures_of, opened, started, watch
from spillway_lab.benchmarks.logs import KAFKA_VARIABLE
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

SINKS = {"at least once": False, "exactly once": True}
LOADS = {"rows_per_s": 200_000, "delay_s": 1_000}  # what is read off, and tuples per second
SETTLE_S, MEASURED_S = 15.0, 20.0
ROUNDS = 3


def run(setup: BenchSetup) -> BenchReport:
    if KAFKA_VARIABLE not in os.environ:
        raise SpillwayError(
            f"{KAFKA_VARIABLE} is not set: name a broker, host:port, or run it beside one with"
            " tests/kafka/with_broker.py"
        )
    rounds = 1 if setup.quick else ROUNDS
    seen: dict[str, dict[str, list[float]]] = {name: {load: [] for load in LOADS} for name in SINKS}
    with opened(_flow(True, 1)) as spark:
        _one(spark, True, 10_000)  # warm: the JVM gets faster for a minute
        for turn in range(rounds):
            for load, rate_per_s in LOADS.items():
                order = list(SINKS.items())
                for name, exactly_once in order if turn % 2 == 0 else reversed(order):
                    setup.progress(f"{name}, {load}, round {turn + 1}", turn / rounds)
                    seen[name][load].append(_one(spark, exactly_once, rate_per_s)[load])
    results: dict[str, Any] = {
        name: {load: round(float(np.median(values)), 3) for load, values in found.items()}
        | {f"{load}_by_round": [round(value, 3) for value in found[load]] for load in LOADS}
        for name, found in seen.items()
    }
    table = Table(
        title="a query's results into a topic of one partition, medians",
        columns=("sink", "rows/s", "mean delay s"),
        rows=[(name, r["rows_per_s"], r["delay_s"]) for name, r in results.items()],
    )
    return BenchReport(results=results, tables=(table,))


def _one(spark: SparkSession, exactly_once: bool, rate_per_s: int) -> dict[str, float]:
    with started(_flow(exactly_once, rate_per_s), spark) as application:
        begun_s = time.time()
        watch(application, begun_s + SETTLE_S + MEASURED_S)
        found = figures_of(
            application, "default", begun_s + SETTLE_S, begun_s + SETTLE_S + MEASURED_S
        )
    if found.mean_delay_s is None:
        raise SpillwayError("no batch ended in the measured time: the machine is too busy")
    return {"rows_per_s": found.kept_per_s, "delay_s": found.mean_delay_s}


def _flow(exactly_once: bool, rate_per_s: int) -> Flow:
    sink = {
        "type": "kafka",
        "brokers": os.environ[KAFKA_VARIABLE],
        "topic": _topic(),
        "exactly_once": exactly_once,
    }
    stream = {"source": "synthetic", "options": {"rate": rate_per_s}}
    return Flow.model_validate(
        {
            "streams": {"ticks": stream},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"results": {"sql": "SELECT * FROM ticks", "sink": sink}},
        }
    )


def _topic() -> str:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    name = f"spillway-bench-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": os.environ[KAFKA_VARIABLE]})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    return name


BENCHMARKS = (
    Benchmark(name="links", title="Exactly once into a topic: rows/s and delay", run=run),
)

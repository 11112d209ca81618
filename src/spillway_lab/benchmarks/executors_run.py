"""One run of load steps on a standalone cluster, with one policy or with Spark's own allocation."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.scale import DYNAMIC
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.executors import SparkExecutors, live_cores
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.hosts.spark.session.pools import settings_to_scale
from spillway.journal.entries import Entry, Event
from spillway.report import Progress
from spillway_lab.benchmarks.executors_judged import Phase, Steps
from spillway_lab.benchmarks.flow_runs import opened, started
from spillway_lab.benchmarks.standalone import QUICK_START

PEER = "dynamic-allocation"
WORKERS = 8
RATE_PER_S = 20_000
COST_S = 60e-6  # of waiting, a tuple: 1.2 cores at the usual rate
TARGET_S = 6.0
BEGIN = 2  # executors, which is what the usual rate takes
_PATIENCE_S, _CALM_S = 300.0, 5.0  # for executors to come and go; from one look at them to the next
TUPLES_A_WAIT = 10_000  # a part of a task: Arrow's usual batch
PEER_TASKS = 2 * WORKERS  # of a batch: Spark asks for more where tasks wait for executors
_LOOK_S = 0.25
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Of the phases, in seconds: the load is 1x, 1x, 3x, 1x; the first is not measured."""

    warm_s: float = 30.0
    usual_s: float = 15.0
    high_s: float = 90.0
    after_s: float = 40.0

    def phases(self, begun_s: float) -> tuple[Phase, ...]:
        first_s = begun_s + self.warm_s
        high_s = first_s + self.usual_s
        after_s = high_s + self.high_s
        return (
            Phase(rate_per_s=RATE_PER_S, from_s=first_s, to_s=high_s),
            Phase(rate_per_s=3.0 * RATE_PER_S, from_s=high_s, to_s=after_s),
            Phase(rate_per_s=RATE_PER_S, from_s=after_s, to_s=after_s + self.after_s),
        )


@dataclass
class _Heard:
    """What a run's journal says of executors."""

    decided: list[Event] = field(default_factory=list)
    said: list[dict[str, Any]] = field(default_factory=list)

    def entry(self, entry: Entry) -> None:
        if isinstance(entry, Event) and entry.kind.startswith("executors"):
            self.said.append({"time_s": entry.time_s, "event": entry.kind, **entry.fields})
            if "wanted_cores" in entry.fields:
                self.decided.append(entry)

    def batch(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None:
        pass


@contextmanager
def session(address: str, *, peer: bool) -> Iterator[SparkSession]:
    """With the waiting operator; for the peer with Spark's own allocation."""
    with opened(_flow(PEER if peer else None, address, Lengths(), 0.0)) as spark:
        _register_wait(spark)
        yield spark


def measured(
    policy: str,
    address: str,
    spark: SparkSession,
    lengths: Lengths,
    progress: Progress,
    settings: Mapping[str, Any] = NOTHING,
) -> tuple[Steps, list[dict[str, Any]]]:
    """The steps, and what was said of executors. `settings`: of `scale`, beside the policy."""
    if policy != PEER:
        progress(f"{policy}: down to {BEGIN} executors", 0.0)
        _begin(spark)
    heard, begun_s = _Heard(), time.time() + 1.0
    flow = _flow(policy, address, lengths, begun_s, settings)
    phases = lengths.phases(begun_s)
    with started(flow, spark, heard) as application:
        counts = list(_watched(application, begun_s, phases[-1].to_s, progress, policy))
        batches = list(application.batches)
    changed_s = [at_s for at_s, _ in counts[1:]]
    steps = Steps(
        phases=phases,
        batches=batches,
        counts=counts,
        decided_s=changed_s if policy == PEER else [event.time_s for event in heard.decided],
        target_s=TARGET_S,
        cost_s=COST_S,
    )
    return steps, heard.said


def _begin(spark: SparkSession) -> None:
    """A standalone cluster starts as many as there is room for, whatever the settings say."""
    executors, deadline_s = SparkExecutors(spark), time.monotonic() + _PATIENCE_S
    while len(there := executors.executors()) != BEGIN:
        if time.monotonic() > deadline_s:
            raise SpillwayError(f"{len(there)} executors are there instead of {BEGIN}")
        executors.resize(BEGIN, [one.name for one in there[BEGIN:]])
        time.sleep(_CALM_S)


def _watched(
    application: Application, begun_s: float, until_s: float, progress: Progress, policy: str
) -> Iterator[tuple[float, int]]:
    """(moment, executors) whenever their number changes; an executor has one core."""
    before = None
    while (now_s := time.time()) < until_s:
        application.supervise()
        count = live_cores(application.spark.sparkContext)
        if count != before:
            yield now_s, count
            before = count
        progress(f"{policy}: {count} executors", (now_s - begun_s) / (until_s - begun_s))
        time.sleep(_LOOK_S)


_CONFIG: Mapping[str, Any] = {
    **settings_to_scale(BEGIN, WORKERS),
    "spark.executor.memory": "512m",
    "spark.executor.cores": 1,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": TUPLES_A_WAIT,
}
_DYNAMIC: Mapping[str, Any] = {
    DYNAMIC: "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": 1,
    "spark.dynamicAllocation.initialExecutors": BEGIN,
    "spark.dynamicAllocation.maxExecutors": WORKERS,
}


def _flow(
    policy: str | None,
    address: str,
    lengths: Lengths,
    begun_s: float,
    settings: Mapping[str, Any] = NOTHING,
) -> Flow:
    first_s = lengths.warm_s + lengths.usual_s
    rates = f"0:{RATE_PER_S},{first_s:.0f}:{3 * RATE_PER_S}"
    rates += f",{first_s + lengths.high_s:.0f}:{RATE_PER_S}"
    options = {"rate": rates, "start": begun_s}
    config, scale = dict(_CONFIG), None
    if policy == PEER:
        options["parallelism"] = PEER_TASKS
        config |= _DYNAMIC
    elif policy is not None:
        own = {"min": 1, "max": WORKERS, "policy": policy, "period": "4s", "grace": "20s"}
        scale = {**own, **settings}
    return Flow.model_validate(
        {
            "streams": {"events": {"source": "synthetic", "options": options}},
            "classes": {"gold": {"delay": f"{TARGET_S:g}s"}},
            "queries": {
                "answers": {
                    "class": "gold",
                    "sink": {"type": "noop"},
                    "sql": "SELECT key, waited(value) AS value FROM events",
                }
            },
            "spark": {"master": address, "config": config},
            "scale": scale,
        }
    )


def _register_wait(spark: SparkSession) -> None:
    """An operator that waits for each tuple, as for an answer from elsewhere; made here, so that
    executors are sent it and need not have it."""
    cost_s = COST_S

    def waited(values: pa.Array) -> pa.Array:
        time.sleep(cost_s * len(values))
        return values

    spark.udf.register("waited", arrow_udf(waited, "double"))  # type: ignore[call-overload]

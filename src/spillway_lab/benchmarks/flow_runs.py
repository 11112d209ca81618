"""Runs of whole flows on Spark for benchmarks: with pools, in a folder that is thrown away."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application, Listener
from spillway.hosts.spark.driver.progress import DeliveredBatch, summarise
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.pools import session_for
from spillway.hosts.spark.session.session import open_session


@contextmanager
def running(flow: Flow) -> Iterator[Application]:
    """The flow in a session of its own; it is stopped and its folder removed at the end."""
    with opened(flow) as spark, started(flow, spark) as application:
        yield application


@contextmanager
def opened(flow: Flow) -> Iterator[SparkSession]:
    """A session with pools and task slots for the classes of the flow."""
    root = Path(tempfile.mkdtemp(prefix="spillway-session-"))
    priorities = {name: c.priority for name, c in flow.classes.items()}
    master, settings = session_for(flow.spark.master, priorities, root, len(flow.queries))
    given = {key: str(value) for key, value in flow.spark.config.items()}
    output = SparkOutput(root / "spark.log")
    spark = open_session(master, {**settings, **given}, name="spillway bench", output=output)
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def started(flow: Flow, spark: SparkSession, *listeners: Listener) -> Iterator[Application]:
    root = Path(tempfile.mkdtemp(prefix="spillway-flow-"))
    application = Application(flow, spark, Folder(root=root))
    application.listeners += listeners
    try:
        application.start()
        try:
            yield application
        finally:
            application.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def watch(application: Application, until_s: float) -> None:
    """Supervise until this time of the wall clock."""
    while (left_s := until_s - time.time()) > 0.0:
        application.supervise()
        time.sleep(min(0.5, left_s))


@dataclass(frozen=True, kw_only=True)
class ClassFigures:
    """What a class was given within a span of time, by the batches that ended in it."""

    within_target_ratio: float  # of everything offered: what is shed is not delivered
    shed_tuples: int
    offered_tuples: int
    mean_delay_s: float | None
    p99_delay_s: float | None
    kept_per_s: float
    batches: int
    mean_batch_s: float | None
    busy_ratio: float  # batch time over time: 1 is a batch always running (for one query)
    longest_gap_s: float  # between the ends of two batches


def figures_of(
    application: Application, class_name: str, from_s: float, to_s: float
) -> ClassFigures:
    target_s = application.target(class_name).delay_s
    batches = batches_of(application, class_name, from_s, to_s)
    seen = summarise(batches, target_s)
    offered = sum(batch.offered_tuples for batch in batches)
    kept = sum(batch.kept_tuples for batch in batches)
    late = seen.delayed_tuples if seen else 0.0
    ends_s = [from_s, *sorted(batch.ended_s for batch in batches), to_s]
    return ClassFigures(
        within_target_ratio=(kept - late) / offered if offered else 1.0,
        shed_tuples=offered - kept,
        offered_tuples=offered,
        mean_delay_s=seen.mean_s if seen else None,
        p99_delay_s=seen.p99_s if seen else None,
        kept_per_s=kept / (to_s - from_s),
        batches=len(batches),
        mean_batch_s=seen.mean_batch_s if seen else None,
        busy_ratio=sum(batch.duration_s for batch in batches) / (to_s - from_s),
        longest_gap_s=max(b - a for a, b in pairwise(ends_s)),
    )


def batches_of(
    application: Application, class_name: str, from_s: float, to_s: float
) -> list[DeliveredBatch]:
    queries = {n for n, q in application.flow.queries.items() if q.class_name == class_name}
    return [
        batch
        for batch in list(application.batches)
        if batch.gate.split("/")[0] in queries and from_s <= batch.ended_s < to_s
    ]

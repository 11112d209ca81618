"""One source under one query, in a JVM of its own on one core: rows per second and their price."""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, count, expr, from_json, max, window

from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.jobs.side import into_file
from spillway_lab.benchmarks.kafka_source.as_flow import as_flow
from spillway_lab.benchmarks.kafka_source.asked import (
    DELAY,
    SPARK,
    Asked,
    OnBatch,
    Place,
    manager_of,
    options_of,
)
from spillway_lab.benchmarks.kafka_source.records import AVRO_SCHEMA, READ
from spillway_lab.benchmarks.memory import cpu_s

_LIMIT_S = 900.0
AVRO, COMBINED = "windowed-avro", "windowed-combined"


@dataclass(frozen=True, kw_only=True)
class Drained:
    scanned: int
    seconds: float
    cpu_s: Mapping[str, float]  # by process


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where("price > 9000").selectExpr("at", "price * 2 AS twice")


def windowed(rows: DataFrame) -> DataFrame:
    spans = rows.withWatermark("at", "5 seconds").groupBy(window("at", "10 seconds"))
    return spans.agg(max("price"), count("*"))


SHAPES: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "stateless": stateless,
    "windowed": windowed,
    AVRO: windowed,  # of Avro records
    COMBINED: windowed,  # in a flow, where the gate has a say in it
}


def drained(asked: list[Asked], place: Place) -> list[Drained]:
    """The topic drained once to warm the JVM up, then once for each that is asked for."""
    if place.core is not None:
        os.sched_setaffinity(0, {place.core})  # and all that it starts
    with tempfile.TemporaryDirectory(prefix="spillway-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        into_file(folder / "log")
        config = {"spark.jars": place.jars} if asked[0].source == SPARK else {}
        spark = open_session("local[1]", config, "spillway bench kafka-source")
        try:
            runs = [asked[0], *asked]
            return [
                _drained(spark, one, place, folder / str(turn)) for turn, one in enumerate(runs)
            ][1:]
        finally:
            spark.stop()


def _drained(spark: SparkSession, asked: Asked, place: Place, checkpoint: Path) -> Drained:
    """From the end of the first batch until all is read; Spark's own first batch is a whole one."""
    marks: list[tuple[int, float, dict[str, float]]] = []
    done, scanned = threading.Event(), 0

    def on_batch(progress: BatchProgress) -> None:
        nonlocal scanned
        if (reached := _reached(progress, place.topic)) > scanned:
            scanned = reached
            marks.append((scanned, time.monotonic(), cpu_s()))
        if scanned >= place.records:
            done.set()

    is_flow = asked.shape == COMBINED and asked.source != SPARK
    running = as_flow if is_flow else _as_job
    deadline_s = time.monotonic() + _LIMIT_S
    with running(spark, asked, place, checkpoint, on_batch):
        while not done.wait(1.0) and spark.streams.active and time.monotonic() < deadline_s:
            pass
    if not done.is_set() or len(marks) < 2:
        raise RuntimeError(f"{asked} read {scanned} of {place.records} records")
    (from_, from_s, before), (to, to_s, after) = marks[0], marks[-1]
    return Drained(
        scanned=to - from_,
        seconds=to_s - from_s,
        cpu_s={name: after[name] - before.get(name, 0.0) for name in after},
    )


@contextmanager
def _as_job(
    spark: SparkSession, asked: Asked, place: Place, checkpoint: Path, on_batch: OnBatch
) -> Iterator[None]:
    monitor = ProgressMonitor(spark, on_batch)
    query = (
        SHAPES[asked.shape](_rows(spark, asked, place))
        .writeStream.format("noop")
        .outputMode("append" if asked.shape == "stateless" else "update")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    try:
        yield
    finally:
        query.stop()
        monitor.close()
    if (error := query.exception()) is not None:
        raise error


def _rows(spark: SparkSession, asked: Asked, place: Place) -> DataFrame:
    if asked.source == SPARK:
        raw = spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": place.servers,
                "subscribe": place.topic,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(asked.batch),
            }
        )
        return raw.load().select(_decoded(place).alias("v")).select("v.price", "v.at")
    manager, parameters = manager_of(asked)
    options = {
        **options_of(asked, place),
        "source": "kafka",
        "schema": READ,
        "delay": DELAY,
        "manager": manager,
        **{f"manager.{name}": str(value) for name, value in parameters.items()},
    }
    return spark.readStream.format("spillway").options(**options).load()


def _decoded(place: Place) -> Column:
    """By Spark's own functions; those for Avro know nothing of the five bytes in front."""
    if place.avro is None:
        return from_json(col("value").cast("string"), READ)
    return from_avro(expr("substring(value, 6)"), AVRO_SCHEMA)


def _reached(progress: BatchProgress, topic: str) -> int:
    """How many records of the topic's one partition are behind the query."""
    [source] = progress.sources
    end = source.get("endOffset")
    end = json.loads(end) if isinstance(end, str) else end
    if not end:
        return 0
    if "seq" in end:
        return sum(stretch.stop for stretch in decode(end).stretches)
    return int(end[topic]["0"])

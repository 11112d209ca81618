"""One source under one query, in a JVM of its own on one core: rows per second and their price."""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, from_json, max, window

from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.jobs.side import into_file
from spillway_lab.benchmarks.kafka_source.records import READ
from spillway_lab.benchmarks.memory import cpu_s

_LIMIT_S = 900.0
SPARK, PYTHON, NATIVE = "spark", "python", "native"


@dataclass(frozen=True, kw_only=True)
class Place:
    servers: str
    topic: str
    records: int
    jars: str
    core: int | None  # None: no core can be set apart


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What runs: batches of so many kept records, a share of what is scanned."""

    source: str
    shape: str
    batch: int
    share: float = 1.0


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

    monitor = ProgressMonitor(spark, on_batch)
    rows = _rows(spark, asked, place)
    query = (
        SHAPES[asked.shape](rows)
        .writeStream.format("noop")
        .outputMode("append" if asked.shape == "stateless" else "update")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    deadline_s = time.monotonic() + _LIMIT_S
    while not done.wait(1.0) and query.exception() is None and time.monotonic() < deadline_s:
        pass
    query.stop()
    monitor.close()
    if (error := query.exception()) is not None:
        raise error
    if not done.is_set() or len(marks) < 2:
        raise RuntimeError(f"{asked} read {scanned} of {place.records} records")
    (from_, from_s, before), (to, to_s, after) = marks[0], marks[-1]
    return Drained(
        scanned=to - from_,
        seconds=to_s - from_s,
        cpu_s={name: after[name] - before.get(name, 0.0) for name in after},
    )


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
        values = raw.load().select(from_json(col("value").cast("string"), READ).alias("v"))
        return values.select("v.*")
    options = {
        "source": "kafka",
        "topic": place.topic,
        "kafka.bootstrap.servers": place.servers,
        "schema": READ,
        "reader": asked.source,
        "startingOffsets": "earliest",
        "delay": "10m",  # bounds no batch
        "first_batch": str(asked.batch),
        "max_batch": str(asked.batch),
        "parallelism": "1",
        "manager": "none",
    }
    if asked.share < 1.0:
        options |= {"manager": "fixed", "manager.keep_fraction": str(asked.share)}
    return spark.readStream.format("spillway").options(**options).load()


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

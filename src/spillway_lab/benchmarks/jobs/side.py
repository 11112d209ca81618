"""One job once, behind the gate or behind Spark's own Kafka source, in a JVM of its own."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.gate.ledger import shed_positions
from spillway.gate.offsets import Offset, decode
from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway_lab.benchmarks.jobs.catalog import JOBS
from spillway_lab.benchmarks.jobs.job import Job, Judged, judge
from spillway_lab.benchmarks.jobs.records import SCHEMA, Ids, Records, produced, topic_for

DELAY = "2s"
DRAINED_WITHIN_S = 40.0
LAST_BATCHES_S = 8.0  # what the watermark closes comes out a batch or two later
_LEAD_S = 1.0  # from here to the first record


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job runs: broker, jars of Spark's own source (None: the gate), folder."""

    servers: str
    jars: str | None
    folder: Path


@dataclass(kw_only=True)
class Taken:
    """What the batches took, by topic and query."""

    records: dict[str, Records]
    begun_s: float
    delays_s: list[npt.NDArray[np.float64]] = field(default_factory=list)
    gates: dict[tuple[str, str], Offset] = field(default_factory=dict)
    consumed: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, progress: BatchProgress) -> None:
        for source in progress.sources:
            start, end = (_read(source.get(name)) for name in ("startOffset", "endOffset"))
            if end and end != start:
                self._add_part(progress, start, end)

    def _add_part(
        self, progress: BatchProgress, start: dict[str, Any], end: dict[str, Any]
    ) -> None:
        if "seq" in end:
            offset = decode(end)
            topic = offset.pinned["topic"]
            self.gates[progress.query, topic] = offset
            spans = [(s.partition, s.start, s.stop) for s in offset.stretches]
            shed = dict(shed_positions(offset))
        else:
            [(topic, stops)] = end.items()
            starts = start.get(topic, {})
            spans = [(int(p), starts.get(p, 0), stop) for p, stop in stops.items()]
            shed = {}
        for partition, first, stop in spans:
            ids = self.records[topic].ids_of(partition, first, stop)
            where = progress.query, topic
            self.consumed[where] = self.consumed.get(where, 0) + len(ids)
            kept = np.delete(ids, shed[partition] - first) if partition in shed else ids
            self._delayed(topic, kept, progress.ended_s)

    def _delayed(self, topic: str, ids: Ids, ended_s: float) -> None:
        due_s = self.begun_s + self.records[topic].due_us(ids) / 1e6
        self.delays_s.append(ended_s - due_s)

    @property
    def offered(self) -> int:
        return sum(self.consumed.values())

    @property
    def shed(self) -> int:
        return sum(offset.totals.shed for offset in self.gates.values())


def run_side(name: str, place: Place) -> dict[str, Any]:
    """Figures of one side; a job that fails says why in one line."""
    into_file(place.folder / "log")
    job = next(job for job in JOBS if job.name == name)
    with ExitStack() as stack:
        spark = stack.enter_context(_session(job, place))
        topics = {f"spillway-job-{uuid4().hex[:8]}": records for records in job.streams}
        for topic, records in topics.items():
            stack.enter_context(topic_for(place.servers, topic, records))
        begun_s = time.time() + _LEAD_S
        taken = Taken(records=topics, begun_s=begun_s)
        monitor = ProgressMonitor(spark, taken.add)
        stack.callback(monitor.close)
        for topic, records in topics.items():
            stack.enter_context(produced(place.servers, topic, records, begun_s))
        run = JobRun(job, place, spark, list(topics))
        error = run.through(taken)
        expected = job.expected(job.streams, round(begun_s * 1e6))
        judged = [judge(rows, expected) for rows in run.found()]
        return figures(taken, judged, run.asked(taken), error)


def figures(
    taken: Taken, judged: Sequence[Judged], asked: int, error: str | None
) -> dict[str, Any]:
    delays_s = np.concatenate(taken.delays_s) if taken.delays_s else np.array([])
    found: dict[str, Any] = {
        "offered": taken.offered,
        "shed": taken.shed,
        "wrong": sum(j.wrong for j in judged),
        "doubled": sum(j.doubled for j in judged),
        "unread": asked - taken.offered,
        "delay_s": float(delays_s.mean()) if delays_s.size else None,
        "p99_s": float(np.quantile(delays_s, 0.99)) if delays_s.size else None,
    }
    return found if error is None else found | {"error": error}


class JobRun:
    """The queries of one job, started as often as it asks for."""

    def __init__(self, job: Job, place: Place, spark: SparkSession, topics: list[str]) -> None:
        self._job, self._place, self._spark, self._topics = job, place, spark, topics
        self._updated: list[dict[tuple[int, int], int]] = []
        self._queries: list[StreamingQuery] = []

    def through(self, taken: Taken) -> str | None:
        """The whole course of the job; the first error of a query."""
        job = self._job
        self._start()
        if job.stops is not None:
            at_s, for_s = job.stops
            time.sleep(max(0.0, taken.begun_s + at_s - time.time()))
            self._stop()
            time.sleep(for_s)
            self._start()
        ends_s = taken.begun_s + max(records.seconds for records in job.streams)
        while time.time() < ends_s + DRAINED_WITHIN_S and not self._error():
            if time.time() > ends_s and taken.offered >= self.asked(taken):
                time.sleep(max(LAST_BATCHES_S, 2.0 * (job.trigger_s or 0.0)))
                break
            time.sleep(0.2)
        error = self._error()
        self._stop()
        return error

    def asked(self, taken: Taken) -> int:
        """Every query is to take every record."""
        return len(self._queries) * sum(records.count for records in taken.records.values())

    def found(self) -> Iterator[list[tuple[int, int, int]]]:
        if self._updated:
            for values in self._updated:
                yield [(a, b, n) for (a, b), n in values.items()]
            return
        for number in range(len(self._queries)):
            folder = self._place.folder / f"out{number}"
            if not any(folder.rglob("*.parquet")):
                yield []
                continue
            rows = self._spark.read.parquet(str(folder)).toArrow()
            columns = (rows[name].to_pylist() for name in ("a", "b", "n"))
            yield list(zip(*columns, strict=True))

    def _start(self) -> None:
        frames = [self._frame(number, topic) for number, topic in enumerate(self._topics)]
        outputs = self._job.queries(frames)
        self._queries = [self._started(number, frame) for number, frame in enumerate(outputs)]

    def _started(self, number: int, frame: DataFrame) -> StreamingQuery:
        folder = self._place.folder
        writer = frame.writeStream.queryName(f"q{number}").outputMode(self._job.mode)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint{number}"))
        if self._job.trigger_s is not None:
            writer = writer.trigger(processingTime=f"{self._job.trigger_s:g} seconds")
        if self._job.mode == "append":
            return writer.format("parquet").option("path", str(folder / f"out{number}")).start()
        values: dict[tuple[int, int], int] = {}
        self._updated.append(values)

        def write(rows: DataFrame, batch_id: int) -> None:
            values.update({(row.a, row.b): row.n for row in rows.collect()})

        return writer.foreachBatch(write).start()

    def _frame(self, number: int, topic: str) -> DataFrame:
        reader = self._spark.readStream.option("kafka.bootstrap.servers", self._place.servers)
        reader = reader.option("startingOffsets", "earliest")
        if self._place.jars is not None:
            rows = reader.format("kafka").option("subscribe", topic).load()
            parsed = rows.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS r")
            return parsed.select("r.*")
        job, folder = self._job, self._place.folder
        options = {"source": "kafka", "topic": topic, "schema": SCHEMA, "delay": DELAY}
        options |= {"ledger": str(folder / f"ledger{number}.jsonl"), **job.options}
        if job.names_trigger:
            options |= {"trigger": f"{job.trigger_s:g}s", "checkpoint": str(folder / "checkpoint0")}
        return reader.format("spillway").options(**options).load()

    def _error(self) -> str | None:
        errors = (query.exception() for query in self._queries)
        return next((_one_line(str(error)) for error in errors if error is not None), None)

    def _stop(self) -> None:
        for query in self._queries:
            query.stop()


@contextmanager
def _session(job: Job, place: Place) -> Iterator[SparkSession]:
    """As a plain job makes it: Spark's own settings, and the Python that it was started with."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    given = {**job.settings, **({"spark.jars": place.jars} if place.jars else {})}
    for key, value in given.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="spillway-job-", ignore_cleanup_errors=True)


def into_file(path: Path) -> None:
    """What Spark and its workers print is no part of the figures."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _read(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return found or {}


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if "SpillwayError" in line or "Error:" in line]
    return (said or lines or [""])[-1][:300]

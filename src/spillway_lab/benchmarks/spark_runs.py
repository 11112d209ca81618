"""Runs of one query on Spark for benchmarks: start, warm up, measure by the monitor, stop."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.plain_source import PlainRows
from spillway_lab.benchmarks.probed_gate import ProbedRows

Shape = Callable[[DataFrame], DataFrame]


def windowed(rows: DataFrame) -> DataFrame:
    """The benchmark query: a windowed aggregate over a thousand keys."""
    watched = rows.withWatermark("event_time", "5 seconds")
    return (
        watched.selectExpr("window(event_time, '10 seconds') AS period", "key", "value")
        .groupBy("period", "key")
        .agg({"value": "avg", "*": "count"})
    )


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where("value > 0.5").selectExpr("key", "value * 2 AS twice")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source with its options: the gate, the bare one, or the gate with probes in between."""

    format: str
    options: Mapping[str, str]


def gate(**options: str) -> Source:
    return Source(format="spillway", options={"source": "synthetic", **options})


def plain(**options: str) -> Source:
    return Source(format="spillway_plain", options=options)


class Bench:
    """One session, one monitor; every run has a checkpoint of its own and leaves nothing behind."""

    def __init__(
        self, *, use_profile: bool = True, config: Mapping[str, str] | None = None
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="spillway-bench-"))
        output = SparkOutput(self._folder / "spark.log")
        self.spark: SparkSession = open_session(
            name="spillway bench", use_profile=use_profile, config=config, output=output
        )
        self.spark.dataSource.register(PlainRows)
        self.spark.dataSource.register(ProbedRows)
        self._batches: dict[str, list[BatchProgress]] = {}
        self._arrived = threading.Condition()
        self._monitor = ProgressMonitor(self.spark, self._on_progress)
        self._runs = 0

    def close(self) -> None:
        self._monitor.close()
        self.spark.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, source: Source, shape: Shape, name: str | None = None) -> "Run":
        """`name` continues the checkpoint of an earlier run with that name."""
        self._runs += 1
        label = name or f"run{self._runs}"
        rows = self.spark.readStream.format(source.format).options(**source.options).load()
        query = (
            shape(rows)
            .writeStream.queryName(label)
            .format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(self._folder / label))
            .start()
        )
        return Run(self, query)

    def batches(self, run_id: str) -> list[BatchProgress]:
        with self._arrived:
            return [b for b in self._batches.get(run_id, []) if b.batch_id > 0]

    def wait_for_batch(self, timeout_s: float) -> None:
        with self._arrived:
            self._arrived.wait(timeout_s)

    def _on_progress(self, progress: BatchProgress) -> None:
        with self._arrived:
            self._batches.setdefault(progress.run_id, []).append(progress)
            self._arrived.notify_all()


class Run:
    def __init__(self, bench: Bench, query: StreamingQuery) -> None:
        self._bench = bench
        self._query = query
        self._run_id = str(query.runId)

    @property
    def batches(self) -> list[BatchProgress]:
        return self._bench.batches(self._run_id)

    def for_batches(self, count: int, timeout_s: float = 300.0) -> list[BatchProgress]:
        """Wait until `count` batches with rows have ended."""
        deadline_s = time.monotonic() + timeout_s
        while len(self.batches) < count and time.monotonic() < deadline_s:
            self._check()
            self._bench.wait_for_batch(1.0)
        return self.batches[:count]

    def for_seconds(self, seconds: float) -> list[BatchProgress]:
        """The batches that end within the next `seconds`."""
        start_s = time.time()
        while time.time() < start_s + seconds:
            self._check()
            time.sleep(min(0.2, max(0.0, start_s + seconds - time.time())))
        return [batch for batch in self.batches if batch.ended_s > start_s]

    def stop(self) -> None:
        self._query.stop()

    def _check(self) -> None:
        error = self._query.exception()
        if error is not None:
            raise error

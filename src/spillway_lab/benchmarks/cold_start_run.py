"""One life of a query, in a process and JVM of its own; every batch that ends becomes a line."""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.gate.offsets import decode
from spillway.hosts.spark.driver.progress import BatchProgress, ProgressMonitor
from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.plain_source import PlainRows
from spillway_lab.benchmarks.spark_runs import windowed

RATE_PER_S = 50_000
TARGET_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Life:
    """Where it keeps its checkpoint, and for how long it runs from its start."""

    side: str  # gate or plain
    folder: str
    lines: str  # of this life
    begun_s: float | None  # the stream's first tuple; None: with this life
    seconds: float | None  # None: until it is killed


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Positions [start, stop) of the stream, and how many of them were shed."""

    start: int
    stop: int
    shed: int
    ended_s: float

    @property
    def tuples(self) -> int:
        return self.stop - self.start

    def delay_s(self, begun_s: float) -> float:
        """Mean over its tuples: the stream is even."""
        return self.ended_s - begun_s - (self.start + self.stop) / 2 / RATE_PER_S


def live(life: Life) -> None:
    spark = open_session(name="spillway bench")
    spark.dataSource.register(PlainRows)
    with Path(life.lines).open("a") as lines:

        def add(value: dict[str, Any]) -> None:
            lines.write(json.dumps(value) + "\n")
            lines.flush()

        monitor = ProgressMonitor(spark, lambda progress: add_batch(progress, add))
        query_s = time.time()
        add({"query_s": query_s})
        query = _started(spark, life, life.begun_s or query_s)
        if query.awaitTermination(life.seconds):  # type: ignore[arg-type]
            raise SystemExit(str(query.exception()))
        query.stop()
        monitor.close()
        spark.stop()


def _started(spark: SparkSession, life: Life, begun_s: float) -> StreamingQuery:
    own = {"start": repr(begun_s), "rate": str(RATE_PER_S)}
    reader = spark.readStream.options(**own)
    if life.side == "gate":
        gate = {"source": "synthetic", "delay": f"{TARGET_S:g}s", "startingOffsets": "earliest"}
        gate["arrival"] = "true"  # as the plain rows have it
        reader = reader.format("spillway").options(**gate)
    else:
        reader = reader.format(PlainRows.name())
    writer = windowed(reader.load()).writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", f"{life.folder}/checkpoint").start()


def add_batch(progress: BatchProgress, add: Any) -> None:
    start, end = (_read(progress.sources[0][name]) for name in ("startOffset", "endOffset"))
    if end == start:
        return
    if "seq" in end:
        after = decode(end)
        before = decode(start) if start.get("seq", -1) >= 0 else None
        shed = after.totals.shed - (before.totals.shed if before else 0)
        [stretch] = after.stretches
        first, stop = stretch.start, stretch.stop
    else:
        first, stop, shed = start.get("position", 0), end["position"], 0
    if stop > first:
        add(asdict(Batch(start=first, stop=stop, shed=shed, ended_s=progress.ended_s)))


def read_lines(lines: Iterable[str]) -> tuple[float, list[Batch]]:
    """When the query was started, and its batches; a kill may have torn the last line."""
    started_s, batches = 0.0, []
    for line in lines:
        if not line.endswith("\n"):
            break
        value = json.loads(line)
        if "query_s" in value:
            started_s = value["query_s"]
        else:
            batches.append(Batch(**value))
    return started_s, batches


def _read(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return found or {}


if __name__ == "__main__":
    live(Life(**json.loads(sys.argv[1])))

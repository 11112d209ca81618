"""Flows through `spillway run`: six light queries in two classes, and the shipped examples."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from spillway.hosts.spark.driver.progress import ProgressMonitor
from spillway.logs.sink_index import SinkIndex
from spillway_lab.benchmarks.jobs.job import Expected, Judged, judge, of_ids
from spillway_lab.benchmarks.jobs.records import COLUMNS, SCHEMA, Records, produced, topic_for
from spillway_lab.benchmarks.jobs.side import DRAINED_WITHIN_S, Place, Taken, figures, into_file

EXAMPLES = ("market", "planetlab", "shared-stream")
NAMES = ("six-queries", *EXAMPLES)
EXAMPLE_S = 50
PRODUCED_S, LAUNCH_S, DRAIN_S = 45.0, 8.0, 25.0

STREAMS = {
    "payments": Records.even(8_000.0, PRODUCED_S),
    "orders": Records.even(8_000.0, PRODUCED_S),
    "clicks": Records.even(10_000.0, PRODUCED_S),
}
_BY_KEY = (
    "SELECT window(event_time, '5 seconds') AS period, key, count(*) AS n FROM {}"
    " GROUP BY window(event_time, '5 seconds'), key"
)
_PAIRS = (
    "SELECT p.id AS a, o.key AS n FROM payments p JOIN orders o ON p.id = o.id AND o.event_time"
    " BETWEEN p.event_time - INTERVAL 1 SECOND AND p.event_time + INTERVAL 1 SECOND"
)
QUERIES = {  # name: (class, SQL)
    "fraud": ("gold", _BY_KEY.format("payments")),
    "volume": ("gold", _BY_KEY.format("orders")),
    "paid": ("gold", _PAIRS),
    "trends": ("silver", _BY_KEY.format("clicks")),
    "rare": ("silver", "SELECT id, key FROM clicks WHERE key = 7"),
    "archive": ("silver", "SELECT id, key * 2 AS twice FROM payments"),
}
# Each query is to take all of the streams that it reads.
ASKED = sum(
    records.count for _, sql in QUERIES.values() for name, records in STREAMS.items() if name in sql
)


def run_flow(name: str, place: Place) -> dict[str, Any]:
    """By its name, as a user would run it: offered, shed and delays are of all its queries."""
    into_file(place.folder / "printed")
    if name in EXAMPLES:
        return _totals(_run(Path("examples") / f"{name}.yaml", EXAMPLE_S, place.folder))
    topics = {stream: f"spillway-job-{uuid4().hex[:8]}" for stream in STREAMS}
    with ExitStack() as stack:
        begun_s = time.time() + LAUNCH_S
        for stream, records in STREAMS.items():
            stack.enter_context(topic_for(place.servers, topics[stream], records))
            stack.enter_context(produced(place.servers, topics[stream], records, begun_s))
        if place.jars is not None:
            return _plain(topics, begun_s, place)
        file = place.folder / "six.yaml"
        file.write_text(yaml.safe_dump(flow_of(topics, place.servers, place.folder / "paid")))
        seconds = begun_s + PRODUCED_S + DRAIN_S - time.time()
        found = _totals(_run(file, seconds, place.folder)) | asdict(_pairs(place.folder / "paid"))
        return found | {"unread": ASKED - found["offered"]}


def flow_of(topics: dict[str, str], servers: str, paid: Path) -> dict[str, Any]:
    """The flow file of the six."""
    streams = {
        stream: {
            "source": "kafka",
            "options": {
                "topic": topic,
                "kafka.bootstrap.servers": servers,
                "startingOffsets": "earliest",
            },
            "columns": dict(COLUMNS),
            "event_time": "event_time",
            "watermark": "5s",
        }
        for stream, topic in topics.items()
    }
    queries = {
        name: {
            "class": class_name,
            "mode": "update" if "GROUP BY" in sql else "append",
            "sink": {"type": "parquet", "path": str(paid)} if name == "paid" else {"type": "noop"},
            "sql": sql,
        }
        for name, (class_name, sql) in QUERIES.items()
    }
    classes = {"gold": {"priority": 3, "delay": "4s"}, "silver": {"priority": 1, "delay": "4s"}}
    return {"streams": streams, "classes": classes, "queries": queries}


def _run(file: Path, seconds: float, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", "from spillway.cli.app import main; main()", "run", str(file)]
    command += ["--duration", f"{seconds:.0f}s", "--folder", str(folder / "run"), "--json"]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=False)
    if done.returncode != 0:
        lines = (folder / "log").read_text(errors="replace").splitlines()
        return {"error": (lines or [f"exit code {done.returncode}"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _totals(summary: dict[str, Any]) -> dict[str, Any]:
    seen = [q["delivered"] for q in summary.get("queries", {}).values() if q["delivered"]]
    kept = [query["kept_tuples"] for query in seen]
    offered = sum(query["offered_tuples"] for query in seen)
    found: dict[str, Any] = {
        "offered": offered,
        "shed": offered - sum(kept),
        "wrong": 0,
        "doubled": 0,
        "delay_s": float(np.average([q["mean_s"] for q in seen], weights=kept)) if seen else None,
        "p99_s": max((query["p99_s"] for query in seen), default=None),  # of the worst query
    }
    return found | ({"error": summary["error"]} if "error" in summary else {})


def _plain(topics: dict[str, str], begun_s: float, place: Place) -> dict[str, Any]:
    """The six as a plain job."""
    builder = SparkSession.builder.master("local[*]").config("spark.jars", place.jars or "")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    records = {topic: STREAMS[stream] for stream, topic in topics.items()}
    taken = Taken(records=records, begun_s=begun_s)
    monitor = ProgressMonitor(spark, taken.add)
    try:
        for stream, topic in topics.items():
            reader = spark.readStream.format("kafka").option("subscribe", topic)
            reader = reader.option("kafka.bootstrap.servers", place.servers)
            rows = reader.option("startingOffsets", "earliest").load()
            parsed = rows.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS r")
            timed = parsed.select("r.*").withWatermark("event_time", "5 seconds")
            timed.createOrReplaceTempView(stream)
        started = [_started(spark, query, place.folder) for query in QUERIES]
        ends_s = begun_s + PRODUCED_S + DRAINED_WITHIN_S
        while taken.offered < ASKED and time.time() < ends_s:
            time.sleep(0.2)
        for query in started:
            query.stop()
    finally:
        monitor.close()
        spark.stop()
    return figures(taken, [_pairs(place.folder / "paid")], ASKED, None)


def _started(spark: SparkSession, name: str, folder: Path) -> Any:
    sql = QUERIES[name][1]
    writer = spark.sql(sql).writeStream.queryName(name)
    writer = writer.outputMode("update" if "GROUP BY" in sql else "append")
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    if name == "paid":
        return writer.format("parquet").option("path", str(folder / "paid")).start()
    return writer.format("noop").start()


def _pairs(folder: Path) -> Judged:
    """What the join delivered: as a file sink writes it, by its own list of files."""
    index = SinkIndex(str(folder))
    index.refresh()
    rows: list[tuple[int, int, int]] = []
    for file in index.files(0, index.rows):
        table = pq.read_table(file.path)
        rows += [(a, 0, n) for a, n in zip(*(table[c].to_pylist() for c in "an"), strict=True)]
    count = min(STREAMS["payments"].count, STREAMS["orders"].count)
    return judge(rows, Expected(rows=of_ids(np.arange(count))))

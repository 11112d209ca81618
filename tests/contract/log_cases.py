"""One small stream for every log of the contract suite."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

START_S = 1_800_000_000.0
ROWS = 3000


@dataclass(frozen=True, kw_only=True)
class Case:
    """Options of a log that holds rows by `now_s`, and how exact its arrival curve is.

    A curve is thinned to a bounded number of points: `tolerance_s` is what that may cost between
    them. At its points it is exact, unless the log can only sample arrivals.
    """

    options: Mapping[str, str]
    now_s: float
    schema: pa.Schema | None = None
    tolerance_s: float = 2e-6
    ascending: bool = True
    exact_points: bool = True


def synthetic_profile(folder: Path) -> Case:
    options = {"source": "synthetic", "rate": "0:1000,1:0,2:5000", "partitions": "2"}
    return Case(options=options | {"start": str(START_S)}, now_s=START_S + 2.7)


def synthetic_workload(folder: Path) -> Case:
    options = {"source": "synthetic", "workload": "pareto", "rate": "700", "duration": "3s"}
    columns = "k key(50, 1.3), s string(9), i int(-5, 5), late time(2s)"
    fixed = {"start": str(START_S), "seed": "7", "columns": columns}
    return Case(options=options | fixed, now_s=START_S + 5.0, tolerance_s=2e-2)


def synthetic_schema(folder: Path) -> Case:
    schema = pa.schema([("n", pa.int32()), ("x", pa.float64()), ("name", pa.string())])
    options = {"source": "synthetic", "rate": "1e6", "start": str(START_S), "tuples": str(ROWS)}
    return Case(options=options, schema=schema, now_s=START_S + 1.0)


def nexmark_bids(folder: Path) -> Case:
    options = {"source": "nexmark", "stream": "bid", "rate": "4600", "partitions": "2"}
    return Case(options=options | {"start": str(START_S)}, now_s=START_S + 1.0)


def replay_npy(folder: Path) -> Case:
    times_us = np.cumsum(np.random.default_rng(1).integers(0, 900, ROWS)).astype(np.uint32)
    np.save(folder / "trace.npy", times_us)
    options = {"source": "replay", "path": str(folder / "trace.npy"), "unit": "us"}
    fixed = {"start": str(START_S), "speed": "0.5", "loop": "true"}
    return Case(options=options | fixed, now_s=START_S + 4.0, tolerance_s=2e-3)


def _trace() -> pa.Table:
    rng = np.random.default_rng(2)
    stamps = 1_700_000_000_000_000 + np.cumsum(rng.integers(0, 2000, ROWS))
    return pa.table(
        {
            "timestamp": pa.array(stamps, pa.timestamp("us", tz="UTC")),
            "symbol": [f"s{i % 17}" for i in range(ROWS)],
            "price": rng.random(ROWS),
        }
    )


def replay_csv(folder: Path) -> Case:
    pyarrow.csv.write_csv(_trace(), folder / "trace.csv")
    options = {"source": "replay", "path": str(folder / "trace.csv"), "start": str(START_S)}
    return Case(options=options, now_s=START_S + 10.0, tolerance_s=2e-3)


def replay_parquet(folder: Path) -> Case:
    pq.write_table(_trace(), folder / "trace.parquet", row_group_size=700)
    options = {"source": "replay", "path": str(folder / "trace.parquet"), "start": str(START_S)}
    schema = pa.schema([("price", pa.float64()), ("symbol", pa.string())])
    return Case(
        options=options | {"speed": "3"}, schema=schema, now_s=START_S + 10.0, tolerance_s=2e-3
    )


def write_batch(folder: Path, batch: int, tables: list[pa.Table], written_s: float) -> None:
    """What Spark's file sink leaves for one batch."""
    (folder / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    lines = ["v1"]
    for part, table in enumerate(tables):
        path = folder / f"part-{part:05d}-{batch}.snappy.parquet"
        pq.write_table(table, path, row_group_size=300)
        lines.append(_entry(path, written_s))
    (folder / "_spark_metadata" / str(batch)).write_text("\n".join(lines))


def _entry(path: Path, written_s: float) -> str:
    entry = {"path": path.as_uri(), "size": path.stat().st_size, "isDir": False}
    rest = {"modificationTime": int(written_s * 1000), "blockReplication": 1}
    return json.dumps(entry | rest | {"blockSize": 33554432, "action": "add"})


def compact(folder: Path, batch: int) -> None:
    """Turns the log of `batch` into a compact file that repeats all before it."""
    log = folder / "_spark_metadata"
    entries = [
        line for each in range(batch + 1) for line in (log / str(each)).read_text().split("\n")[1:]
    ]
    for each in range(batch + 1):
        (log / str(each)).unlink()
    (log / f"{batch}.compact").write_text("\n".join(["v1", *entries]))


def _files(folder: Path, with_arrival: bool) -> Case:
    for batch in range(4):
        tables = [_sink_table(batch, part, with_arrival) for part in range(2)]
        write_batch(folder, batch, tables, START_S + batch)
        if batch == 2:
            compact(folder, batch)
    options = {"source": "files", "path": str(folder)}
    # A curve has 256 points a file: between them, arrivals of this trace are 2 ms apart.
    return Case(options=options, now_s=START_S + 4.0, tolerance_s=5e-3, ascending=not with_arrival)


def _sink_table(batch: int, part: int, with_arrival: bool) -> pa.Table:
    count = 400 + 100 * part
    columns: dict[str, Any] = {"id": np.arange(count) + 1000 * batch + 500 * part}
    if with_arrival:
        times_us = (START_S + batch - 1) * 1e6 + np.arange(count) * 2000 + part
        columns["_arrival"] = pa.array(times_us.astype(np.int64)).view(pa.timestamp("us", "UTC"))
    return pa.table(columns)


def files_commit_time(folder: Path) -> Case:
    return _files(folder, with_arrival=False)


def files_kept_arrival(folder: Path) -> Case:
    return _files(folder, with_arrival=True)


def kafka_raw(broker: Any) -> Case:
    return _kafka(broker, "contract-raw", None)


def kafka_json(broker: Any) -> Case:
    return _kafka(broker, "contract-json", pa.schema([("n", pa.int64()), ("s", pa.string())]))


def kafka_json_in_python(broker: Any) -> Case:
    case = _kafka(broker, "contract-json-in-python", pa.schema([("n", pa.int64())]))
    return replace(case, options={**case.options, "reader": "python"})


def _kafka(broker: Any, topic: str, schema: pa.Schema | None) -> Case:
    from confluent_kafka import Producer

    broker.create_topic(topic, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for n in range(ROWS):
        value = json.dumps({"n": n, "s": f"k{n % 7}"})
        producer.produce(topic, value.encode(), key=str(n).encode(), partition=n % 2)
        if n % 1000 == 0:
            producer.flush()
            time.sleep(0.3)  # the curve must show the pause
    producer.flush()
    options = {"source": "kafka", "topic": topic, "kafka.bootstrap.servers": broker.bootstrap}
    return Case(
        options=options, schema=schema, now_s=time.time(), tolerance_s=0.15, exact_points=False
    )


LOCAL: tuple[Callable[[Path], Case], ...] = (
    synthetic_profile,
    synthetic_workload,
    synthetic_schema,
    nexmark_bids,
    replay_npy,
    replay_csv,
    replay_parquet,
    files_commit_time,
    files_kept_arrival,
)
KAFKA: tuple[Callable[[Any], Case], ...] = (kafka_raw, kafka_json, kafka_json_in_python)

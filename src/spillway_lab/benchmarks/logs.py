"""How fast each log yields rows in one process, and what a scanned and a kept row cost.

A read of m scanned and n kept rows takes s * m + c * n; both prices are fitted over the keep
fractions. Logs that are addressed by position touch only what is kept: their s is about the price
of choosing the positions, which the caller pays.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spillway.gate.sampling import UniformRule, kept_positions
from spillway.logs.catalog import open_log
from spillway.ports import Log, Span
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

KEEP_FRACTIONS = (1.0, 0.5, 0.1)
KAFKA_VARIABLE = "SPILLWAY_KAFKA"  # host:port of a broker for the kafka rows
KAFKA_JARS_VARIABLE = "SPILLWAY_KAFKA_JARS"  # of Spark's own source, with commas between them
_ROUNDS = 5
_START = {"start": "1000000000"}


@dataclass(frozen=True, kw_only=True)
class _Case:
    name: str
    log: Log
    rows: int


def run(setup: BenchSetup) -> BenchReport:
    rows = 200_000 if setup.quick else 2_000_000
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        makers = [_synthetic, _synthetic_strings, _replay_npy, _replay_parquet, _files]
        if KAFKA_VARIABLE in os.environ:
            makers += [_kafka_json, _kafka_json_in_python, _kafka_raw]
        for index, make in enumerate(makers):
            setup.progress(make.__name__.strip("_"), index / len(makers))
            case = make(Path(folder), rows)
            results[case.name] = _measured(case, setup.seed)
    columns = ("log", *(f"rows/s kept {f:g}" for f in KEEP_FRACTIONS), "ns/scanned", "ns/kept")
    table = Table(
        title="One process, rows in Arrow batches"
        + ("" if KAFKA_VARIABLE in os.environ else f" (kafka: set {KAFKA_VARIABLE}=host:port)"),
        columns=columns,
        rows=[(name, *found.values()) for name, found in results.items()],
    )
    return BenchReport(results=results, tables=(table,))


def _measured(case: _Case, seed: int) -> dict[str, float]:
    span = Span(partition=0, start=0, stop=case.rows)
    found: dict[str, float] = {}
    times_s, kept = [], []
    for fraction in KEEP_FRACTIONS:
        rule = UniformRule(keep_ppm=round(fraction * 1e6), seed=seed)
        wanted = None if fraction == 1.0 else kept_positions(0, case.rows, rule)
        count = case.rows if wanted is None else len(wanted)
        seconds = min(_read_s(case.log, span, wanted, count) for _ in range(_ROUNDS))
        found[f"rows_per_s_kept_{fraction:g}"] = round(case.rows / seconds)
        times_s.append(seconds)
        kept.append(count)
    prices = np.column_stack((np.full(len(kept), case.rows), kept))
    scanned_s, kept_s = np.linalg.lstsq(prices, np.array(times_s), rcond=None)[0]
    return found | {
        "scanned_ns": round(float(scanned_s) * 1e9, 1),
        "kept_ns": round(float(kept_s) * 1e9, 1),
    }


def _read_s(log: Log, span: Span, wanted: Any, count: int) -> float:
    start = time.perf_counter()
    yielded = sum(batch.num_rows for batch in log.read(span, wanted))
    seconds = time.perf_counter() - start
    if yielded != count:
        raise RuntimeError(f"{yielded} rows came out: {count} were asked for")
    return seconds


def _synthetic(folder: Path, rows: int) -> _Case:
    log = open_log({"source": "synthetic", "rate": "5e6", **_START})
    return _Case(name="synthetic", log=log, rows=rows)


def _synthetic_strings(folder: Path, rows: int) -> _Case:
    columns = "s string(1000, 1.2), price double(0, 100), at time(5s)"
    log = open_log({"source": "synthetic", "rate": "5e6", "columns": columns, **_START})
    return _Case(name="synthetic with strings", log=log, rows=rows)


def _replay_npy(folder: Path, rows: int) -> _Case:
    np.save(folder / "trace.npy", np.arange(rows, dtype=np.int64))
    path = str(folder / "trace.npy")
    log = open_log({"source": "replay", "path": path, "unit": "us", **_START})
    return _Case(name="replay npy", log=log, rows=rows)


def _replay_parquet(folder: Path, rows: int) -> _Case:
    import pyarrow.parquet as pq

    pq.write_table(_table(rows), folder / "trace.parquet")
    path = str(folder / "trace.parquet")
    log = open_log({"source": "replay", "path": path, "time": "id", "unit": "us", **_START})
    return _Case(name="replay parquet", log=log, rows=rows)


def _files(folder: Path, rows: int) -> _Case:
    """One sink file of 100,000 rows a batch, as a busy query writes them."""
    import pyarrow.parquet as pq

    (folder / "_spark_metadata").mkdir()
    table = _table(rows)
    for batch, start in enumerate(range(0, rows, 100_000)):
        path = folder / f"part-{batch}.parquet"
        pq.write_table(table.slice(start, 100_000), path)
        entry = {"path": path.as_uri(), "modificationTime": 1000, "action": "add"}
        (folder / "_spark_metadata" / str(batch)).write_text("v1\n" + json.dumps(entry))
    return _Case(name="files", log=open_log({"source": "files", "path": str(folder)}), rows=rows)


def _table(rows: int) -> Any:
    import pyarrow as pa

    span = Span(partition=0, start=0, stop=rows)
    log = open_log({"source": "synthetic", **_START})
    return pa.Table.from_batches(log.read(span, None))


def _kafka_json(folder: Path, rows: int) -> _Case:
    return _kafka("kafka json", _json_columns(), rows)


def _kafka_json_in_python(folder: Path, rows: int) -> _Case:
    return _kafka("kafka json, read in Python", _json_columns(), rows, reader="python")


def _json_columns() -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.int64()), ("price", pa.float64())])


def _kafka_raw(folder: Path, rows: int) -> _Case:
    return _kafka("kafka raw", None, rows)


def _kafka(name: str, schema: Any, rows: int, **more: str) -> _Case:
    rows //= 5  # producing takes longer than reading
    options: Mapping[str, str] = {
        "source": "kafka",
        "topic": f"spillway-bench-{rows}",
        "kafka.bootstrap.servers": os.environ[KAFKA_VARIABLE],
        **more,
    }
    log = open_log(options, schema)
    _produce(options["topic"], rows, lambda: log.extent(time.time())[0].stop)
    return _Case(name=name, log=log, rows=rows)


def _produce(topic: str, rows: int, held: Callable[[], int]) -> None:
    """Fills the topic up to `rows` records of about 40 bytes of JSON."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    servers: dict[str, Any] = {"bootstrap.servers": os.environ[KAFKA_VARIABLE]}
    admin = AdminClient(servers)
    with suppress(Exception):  # there already
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({**servers, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000})
    for number in range(held(), rows):
        producer.produce(topic, json.dumps({"id": number, "price": number / 7}).encode())
    producer.flush()


BENCHMARKS = (
    Benchmark(name="logs", title="Rows per second of every log, and prices per row", run=run),
)

"""`look`: what a shedder that looks at the data costs, in the planner and in a worker.

Per offered tuple, processor time, without Spark and without a network. The planner looks at a batch
before its offset is written, on the driver; a worker reads and judges its part of it afterwards.
Records are JSON in memory: what a log that cannot be read by column decodes, once for each look.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.shedders.blocks import keep, read_block, spans
from spillway.gate.shedders.catalog import asked_shedder
from spillway.gate.shedders.planned import selected
from spillway.logs import catalog
from spillway.logs.json_rows import JsonDecoder
from spillway.ports import ArrivalCurve, Log, Span
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

SHARE_PPM = 300_000
OPTIONS = {
    "source": "synthetic",
    "rate": "100000",
    "start": "1700000000",
    "columns": "id position, k key(1000, 1.0), value double(0, 1), at time",
}
SHEDDERS = {
    "key": {"shedder": "key", "key": "k"},
    "windows": {"shedder": "windows", "window": "100ms"},
    "strata": {"shedder": "strata", "key": "k"},
    "utility": {"shedder": "utility", "utility": "value"},
}


class JsonRecords:
    """The same rows as JSON, in memory: all of it is parsed, whatever columns are asked for."""

    def __init__(self, records: Sequence[bytes], schema: pa.Schema) -> None:
        self._records, self._decoder = records, JsonDecoder(schema)

    def columns(self) -> pa.Schema:
        return self._decoder.schema

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return (Span(partition=0, start=0, stop=len(self._records)),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        raise NotImplementedError

    def read(self, span: Span, wanted: Any) -> Iterator[pa.RecordBatch]:
        yield from self._decoder.decode(self._records[span.start : span.stop]).rows.to_batches()

    def commit(self, stops: Any) -> None: ...


def run(setup: BenchSetup) -> BenchReport:
    """The fastest of several rounds over one batch of which three tenths may stay."""
    tuples, rounds = (100_000, 2) if setup.quick else (500_000, 5)
    results: dict[str, dict[str, dict[str, float]]] = {}
    openers = {"generator": _generated, "JSON records": _records(tuples)}
    for number, (name, options) in enumerate(SHEDDERS.items()):
        setup.progress(name, number / len(SHEDDERS))
        shedder = asked_shedder(options, "at")
        assert shedder is not None
        batch = _batch(tuples, setup.seed)
        results[name] = {}
        for log, opened in openers.items():
            whole, narrow = opened(None), opened(shedder.columns)
            looked = selected(batch, batch, shedder, narrow)
            results[name][log] = {
                "look_ns": _fastest_ns(lambda: selected(batch, batch, shedder, narrow), rounds)  # noqa: B023
                / tuples,
                "judge_ns": _judge_ns(looked, whole, rounds) / tuples,
                "read_ns": _fastest_ns(lambda: _read(looked, whole), rounds) / tuples,  # noqa: B023
            }
    rows = [
        (name, log, *(round(ns, 1) for ns in found.values()))
        for name, logs in results.items()
        for log, found in logs.items()
    ]
    columns = ("shedder", "log", "planner's look (ns)", "worker's judging (ns)", "its read (ns)")
    table = Table(title="one offered tuple, processor time", columns=columns, rows=rows)
    return BenchReport(results=results, tables=(table,))


def _batch(tuples: int, seed: int) -> Offset:
    stretch = Stretch(partition=0, start=0, read=0, stop=tuples)
    rule = Rule(keep_ppm=SHARE_PPM, seed=seed)
    return Offset(gate="g", began_us=1, seq=1, planned_us=1, stretches=(stretch,), rule=rule)


def _generated(columns: Sequence[str] | None) -> Log:
    if columns is None:
        return catalog.open_log(OPTIONS, None)
    schema = catalog.open_log(OPTIONS, None).columns()
    return catalog.open_log(OPTIONS, pa.schema([schema.field(name) for name in columns]))


def _records(tuples: int) -> Callable[[Sequence[str] | None], Log]:
    table = read_block(_generated(None), Span(partition=0, start=0, stop=tuples))
    schema = _generated(None).columns()
    times = np.datetime_as_string(table["at"].to_numpy().astype("datetime64[us]"), timezone="UTC")
    parts = [table[name].to_pylist() for name in ("id", "k", "value")]
    records = [
        json.dumps({"id": i, "k": k, "value": value, "at": at}).encode()
        for i, k, value, at in zip(*parts, times.tolist(), strict=True)
    ]

    def opened(columns: Sequence[str] | None) -> Log:
        names = schema.names if columns is None else columns
        return JsonRecords(records, pa.schema([schema.field(name) for name in names]))

    return opened


def _read(batch: Offset, log: Log) -> None:
    for span in spans(batch.stretches[0]):
        read_block(log, span)


def _judge_ns(batch: Offset, log: Log, rounds: int) -> float:
    blocks = [(span, read_block(log, span)) for span in spans(batch.stretches[0])]
    return _fastest_ns(lambda: [keep(rows, span, batch.rule) for span, rows in blocks], rounds)


def _fastest_ns(work: Callable[[], object], rounds: int) -> float:
    took_s = []
    for _ in range(rounds):
        start_s = time.process_time()
        work()
        took_s.append(time.process_time() - start_s)
    return min(took_s) * 1e9


BENCHMARKS = (
    Benchmark(name="look", title="what a look at the data costs a shedder, and whom", run=run),
)

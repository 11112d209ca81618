"""`kafka-source`: one core drains a Kafka topic, through Spark's own source and through the gate.

Each source has a JVM of its own that has drained the topic once before; what is measured begins
with the end of a first batch. Broker and clients are on the other cores. A shed record's price is
what batches that keep as much cost more when they scan ten times as many.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spillway.report import Table
from spillway_lab.benchmarks.jobs.benchmark import in_a_new_process
from spillway_lab.benchmarks.kafka_source.asked import NATIVE, PYTHON, SPARK, Asked, Place
from spillway_lab.benchmarks.kafka_source.broker import Served, served
from spillway_lab.benchmarks.kafka_source.records import (
    AVRO_SCHEMA,
    as_avro,
    as_json,
    filled_topic,
)
from spillway_lab.benchmarks.kafka_source.side import AVRO, COMBINED, SHAPES, Drained, drained
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

RECORDS, QUICK_RECORDS = 5_000_000, 3_000_000
BATCH = 1_000_000  # records, of both sources: what a batch costs at a fixed price hardly shows
SHARES = (0.5, 0.1, 0.01)  # that batches keep of what they scan
THINNED = 0.1  # the one where the price of a shed record is measured
LEAST_RATIO, LEAST_COMBINED = 3.0, 5.0
MOST_SHED_US, MOST_CPU_US = 0.3, 1.4

Row = dict[str, Any]


def run(setup: BenchSetup) -> BenchReport:
    records = QUICK_RECORDS if setup.quick else RECORDS
    shapes = [setup.only] if setup.only else list(SHAPES)
    results: dict[str, Row] = {}
    with served() as where:
        for is_avro in (False, True):
            wanted = [shape for shape in shapes if (shape == AVRO) == is_avro]
            if wanted:
                done = len(results) / len(shapes)
                setup.progress(f"a topic of {records:,} records", done + 0.02)
                with _topic(where, setup, records, is_avro) as place:
                    for shape in wanted:
                        begun = len(results) / len(shapes)
                        results[shape] = _compared(shape, place, setup, begun)
    return BenchReport(results=results, tables=(_table(results),), failures=tuple(_missed(results)))


@contextmanager
def _topic(where: Served, setup: BenchSetup, records: int, is_avro: bool) -> Iterator[Place]:
    bids = as_avro if is_avro else as_json
    with (
        TemporaryDirectory(prefix="spillway-bench-") as folder,
        filled_topic(where.servers, records, setup.seed, bids) as topic,
    ):
        file = Path(folder, "bid.avsc")
        file.write_text(AVRO_SCHEMA)
        yield Place(
            servers=where.servers,
            topic=topic,
            records=records,
            jars=where.jars,
            core=where.core,
            avro=str(file) if is_avro else None,
        )


def _compared(shape: str, place: Place, setup: BenchSetup, begun: float) -> Row:
    few = int(BATCH * THINNED)
    asked = {
        SPARK: [Asked(source=SPARK, shape=shape, batch=BATCH)],
        PYTHON: [Asked(source=PYTHON, shape=shape, batch=BATCH)],
        NATIVE: [
            Asked(source=NATIVE, shape=shape, batch=BATCH),
            Asked(source=NATIVE, shape=shape, batch=few),
            *(
                Asked(source=NATIVE, shape=shape, batch=round(BATCH * share), share=share)
                for share in SHARES
            ),
        ],
    }
    found: dict[str, list[Drained]] = {}
    for turn, source in enumerate(asked):
        setup.progress(f"{shape}: {source}", begun + turn / len(asked) / len(SHAPES))
        found[source] = in_a_new_process(drained, asked[source], place)
    [spark], [python], [native, dense, *shares] = found[SPARK], found[PYTHON], found[NATIVE]
    thinned, shed = shares[SHARES.index(THINNED)], 1.0 - THINNED
    return {
        "spark_rows_s": _rows_s(spark),
        "python_rows_s": _rows_s(python),
        "gate_rows_s": _rows_s(native),
        "ratio": round(_rows_s(native) / _rows_s(spark), 2),
        "spark_cpu_us": _cpu_us(spark),
        "python_cpu_us": _cpu_us(python),
        "gate_cpu_us": _cpu_us(native),
        "gate_cpu_us_by_process": {
            name: round(seconds / native.scanned * 1e6, 3) for name, seconds in native.cpu_s.items()
        },
        "shed_cpu_us": round((_cpu_us(thinned) - THINNED * _cpu_us(dense)) / shed, 3),
        "scanned_rows_s": {
            f"{share:.0%}": _rows_s(one)
            for share, one in zip((1.0, *SHARES), (native, *shares), strict=True)
        },
    }


def _rows_s(found: Drained) -> int:
    return round(found.scanned / found.seconds)


def _cpu_us(found: Drained) -> float:
    """Of each record that was scanned."""
    return round(sum(found.cpu_s.values()) / found.scanned * 1e6, 3)


def _missed(results: dict[str, Row]) -> list[str]:
    asked = {shape: LEAST_COMBINED if shape == COMBINED else LEAST_RATIO for shape in results}
    slow = [
        f"{shape}: {row['ratio']} times as fast as Spark's own, {asked[shape]:g} is asked for"
        for shape, row in results.items()
        if row["ratio"] < asked[shape]
    ]
    dear = [
        f"{shape}: a shed record takes {row['shed_cpu_us']} us, {MOST_SHED_US} at most is asked for"
        for shape, row in results.items()
        if row["shed_cpu_us"] > MOST_SHED_US
    ]
    heavy = [
        f"{shape}: a record takes {row['gate_cpu_us']} us, {MOST_CPU_US} at most is asked for"
        for shape, row in results.items()
        if row["gate_cpu_us"] > MOST_CPU_US
    ]
    return slow + dear + heavy


def _table(results: dict[str, Row]) -> Table:
    figures = ("spark_rows_s", "python_rows_s", "gate_rows_s", "ratio", "gate_cpu_us")
    return Table(
        title="a Kafka topic drained on one core",
        columns=("query", *figures, "shed_cpu_us"),
        rows=[
            (shape, *(row[figure] for figure in (*figures, "shed_cpu_us")))
            for shape, row in results.items()
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="kafka-source",
        title="a Kafka topic drained on one core: Spark's own source, the gate, both its readers",
        run=run,
        parts=tuple(SHAPES),
    ),
)

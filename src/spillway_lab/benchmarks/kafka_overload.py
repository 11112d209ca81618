"""The Kafka part of `spark-overload`: JSON records of a real broker, a query that one producer
overloads.

Producer and broker run on the same machine, so they run during the calibration too: the capacity
is what they leave. Calibration goes through the gate itself, which keeps everything.
"""

import os
import time
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from spillway.load.oracle import uniform_length_s
from spillway.model import Target
from spillway_lab.benchmarks.calibration import (
    SETTLED,
    SHARES,
    WARM_TURNS,
    Calibration,
    efficiency,
    fitted,
)
from spillway_lab.benchmarks.kafka_load import SCHEMA, producing
from spillway_lab.benchmarks.logs import KAFKA_VARIABLE
from spillway_lab.benchmarks.overload_run import Sample, row_of, sample, settle_s
from spillway_lab.benchmarks.spark_runs import Bench, Source, windowed

RATE_PER_S = 150_000
HASHES = 40  # per tuple: so dear that the producer alone offers more than the query can take
FILL_S = 30.0
FIRST_TUPLES = 60_000
BATCHES, WARM = 4, 2
TURNS = {"predictive": 3}
WARM_S, MEASURED_S = 45.0, 30.0
THINNED = 0.2


def servers() -> str | None:
    return os.environ.get(KAFKA_VARIABLE)


def expensive(rows: DataFrame) -> DataFrame:
    hashed = "cast(value AS STRING)"
    for _ in range(HASHES):
        hashed = f"sha2({hashed}, 512)"
    return windowed(rows.where(f"{hashed} > '0'"))


def overload(bench: Bench, target: Target, laws: tuple[str, ...]) -> dict[str, Any]:
    """Every load manager on the same topic, between two calibrations."""
    address = servers()
    assert address is not None
    rows: dict[str, Any] = {}
    with producing(address, RATE_PER_S) as topic:
        time.sleep(FILL_S)
        tuples, before = _warm(bench, address, topic, target)
        for law in laws:
            samples: list[Sample] = []
            around: list[tuple[Calibration, Calibration]] = []
            for _ in range(TURNS.get(law, 1)):
                source = _source(address, topic, delay=f"{target.delay_s}s", manager=law)
                samples.append(sample(bench, source, expensive, (settle_s(law), MEASURED_S)))
                after = _calibrate(bench, address, topic, tuples)
                around.append((before, after))
                before = after
            rows[law] = row_of(samples, target) | {"rate_per_s": RATE_PER_S}
            rows[law] |= efficiency(samples, around, RATE_PER_S, target)
    return rows


def _warm(bench: Bench, address: str, topic: str, target: Target) -> tuple[int, Calibration]:
    """The batch size of the target, and what it costs once the JVM has stopped getting faster."""
    warm = bench.start(_source(address, topic, delay=f"{target.delay_s}s"), expensive)
    warm.for_seconds(WARM_S)
    warm.stop()
    tuples, machine = FIRST_TUPLES, _calibrate(bench, address, topic, FIRST_TUPLES)
    for _ in range(WARM_TURNS):
        tuples = round(machine.capacity_per_s(target) * uniform_length_s(target))
        before, machine = machine, _calibrate(bench, address, topic, tuples)
        if machine.kept_s > SETTLED * before.kept_s:
            break
    return tuples, machine


def _source(address: str, topic: str, **options: str) -> Source:
    fixed = {"source": "kafka", "topic": topic, "kafka.bootstrap.servers": address}
    return Source(format="spillway", options=fixed | {"schema": SCHEMA} | options)


def _calibrate(bench: Bench, address: str, topic: str, tuples: int) -> Calibration:
    """o and c from whole batches of three sizes, s from batches that keep as many of five times."""
    sizes = [round(share * tuples) for share in SHARES]
    fixed_s, kept_s = fitted(sizes, [_batch_s(bench, address, topic, size) for size in sizes])
    thinned_s = _batch_s(bench, address, topic, tuples, THINNED)
    scanned_s = max(0.0, thinned_s - fixed_s - kept_s * tuples) * THINNED / tuples
    return Calibration(fixed_s=fixed_s, kept_s=kept_s, scanned_s=scanned_s)


def _batch_s(bench: Bench, address: str, topic: str, kept: int, share: float = 1.0) -> float:
    """Mean time of batches that keep `kept` tuples, that share of what they scan."""
    source = _source(
        address,
        topic,
        startingOffsets="earliest",
        first_batch=str(kept),
        max_batch=str(kept),
        delay="10m",  # bounds no batch
        manager="fixed",
        **{"manager.keep_fraction": str(share)},
    )
    run = bench.start(source, expensive)
    batches = run.for_batches(WARM + BATCHES)
    run.stop()
    return float(np.mean([b.duration_s for b in batches[WARM:]]))

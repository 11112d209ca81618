"""What the benchmark of the Kafka source judges, and the records that it reads."""

import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from spillway.logs.avro_rows import AvroDecoder
from spillway.logs.avro_schemas import Schemas
from spillway.logs.json_rows import JsonDecoder
from spillway_lab.benchmarks.kafka_source.benchmark import _missed
from spillway_lab.benchmarks.kafka_source.records import (
    AVRO_NUMBER,
    AVRO_SCHEMA,
    as_avro,
    as_json,
)
from spillway_lab.benchmarks.memory import cpu_s, set_cores


def test_a_slow_source_and_a_dear_shed_record_are_failures() -> None:
    fine = {"ratio": 3.0, "shed_cpu_us": 0.3, "gate_cpu_us": 1.4}
    slow, dear = fine | {"ratio": 2.99}, fine | {"shed_cpu_us": 0.31}
    assert _missed({"stateless": fine, "windowed": fine}) == []
    assert "windowed: 2.99 times as fast" in _missed({"stateless": fine, "windowed": slow})[0]
    assert (
        "windowed: a record takes 1.5 us" in _missed({"windowed": fine | {"gate_cpu_us": 1.5}})[0]
    )
    assert "windowed-combined: 3.0 times" in _missed({"windowed-combined": fine})[0]
    assert "stateless: a shed record takes 0.31 us" in _missed({"stateless": dear})[0]


def test_bids_are_of_about_ninety_bytes_and_follow_the_event_time() -> None:
    values = as_json(100_000, 1000, np.random.default_rng(1))
    assert 80 <= float(np.mean([len(value) for value in values])) <= 110
    schema = pa.schema([("price", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))])
    decoded = JsonDecoder(schema).decode(values)
    assert not decoded.bad
    times_us = decoded.rows.column("at").cast(pa.int64()).to_numpy()
    assert (np.diff(times_us) >= 0).all()
    assert times_us[0] == 1_767_225_601 * 1_000_000, "one second of event time has 100,000 records"


def test_bids_are_the_same_in_avro(tmp_path: Path) -> None:
    file = tmp_path / "bid.avsc"
    file.write_text(AVRO_SCHEMA)
    schemas = Schemas.given(f"{AVRO_NUMBER}={file}", None, 1.0)
    schema = pa.schema([("price", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))])
    avro = as_avro(5_000, 1000, np.random.default_rng(1))
    found = AvroDecoder(schema, schemas).decode(avro)
    assert not found.bad
    same = JsonDecoder(schema).decode(as_json(5_000, 1000, np.random.default_rng(1)))
    assert found.rows.equals(same.rows.combine_chunks())


def test_processor_time_is_told_by_role() -> None:
    before, begun_s = cpu_s()["driver"], time.process_time()
    while time.process_time() < begun_s + 0.1:
        pass
    assert cpu_s()["driver"] - before >= 0.05


def test_all_threads_move_to_the_cores_that_are_named() -> None:
    cores = os.sched_getaffinity(0)
    try:
        set_cores({min(cores)})
        assert os.sched_getaffinity(0) == {min(cores)}
    finally:
        set_cores(set(cores))

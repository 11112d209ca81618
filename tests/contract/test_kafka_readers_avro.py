"""Both readers of Kafka on Avro records: same rows, same malformed and lost records."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reader_cases import Records, alike, options_of, produce, whole

from avro_records import COLUMNS, NUMBER, ROW, SCHEMA, written

pytestmark = pytest.mark.kafka
pytest.importorskip("spillway_native", reason="no native reader: run make native")


@pytest.fixture(scope="module")
def records() -> Records:
    """Every fourth one with some bytes changed, among them some of other schemas and of none."""
    rng, found = random.Random(5), []
    for n in range(4000):
        value = bytearray(written({**ROW, "n": n, "maybe": None if n % 2 else 1.0}))
        if n % 4 == 0:
            value[rng.randrange(len(value))] = rng.randrange(256)
        found.append((None, bytes(value[: -rng.randint(1, 9)] if n % 40 == 1 else value)))
    found[10], found[11], found[12] = (b"key", None), (None, b""), (None, written(ROW, number=99))
    return found


@pytest.fixture(scope="module")
def topic(kafka_broker: Any, records: Records) -> str:
    produce(kafka_broker, "avro", records)
    return "avro"


@pytest.fixture
def options(kafka_broker: Any, topic: str, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "bid.avsc"
    file.write_text(json.dumps(SCHEMA))
    return options_of(kafka_broker, topic, decode="avro", avro_schemas=f"{NUMBER}={file}")


@pytest.mark.parametrize("columns", [COLUMNS, pa.schema([("n", pa.int32())])], ids=["all", "one"])
def test_odd_records(
    options: dict[str, str], records: Records, tmp_path: Path, columns: pa.Schema
) -> None:
    found = alike(tmp_path, options, columns, whole(records), None)
    assert found.totals["malformed"] + len(found.rows) == len(records)
    assert found.totals["malformed"] > 200
    assert len(found.rows) > 2500


def test_a_part_of_them(options: dict[str, str], records: Records, tmp_path: Path) -> None:
    wanted = np.arange(0, len(records), 3)
    found = alike(tmp_path, options, COLUMNS, whole(records), wanted)
    assert found.totals["malformed"] + len(found.rows) == len(wanted)


def test_the_first_malformed_record_is_named(
    options: dict[str, str], records: Records, tmp_path: Path
) -> None:
    found = alike(tmp_path, {**options, "mode": "FAILFAST"}, COLUMNS, whole(records), None)
    assert "option 'mode' is FAILFAST" in found.said

"""The native decoder of Avro against the reference: same rows, same malformed records."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from avro_records import COLUMNS, NUMBER, ROW, SCHEMA, written
from spillway.logs.avro_rows import AvroDecoder
from spillway.logs.avro_schemas import Schemas
from spillway.logs.dead_letters import Malformed
from spillway.logs.kafka_form import Form
from spillway.logs.kafka_native import _native_form, rows_of, takes
from spillway.logs.schema import ARRIVAL

pytest.importorskip("spillway_native", reason="no native reader: run make native")

Values = list[bytes | None]


@pytest.fixture
def schemas(tmp_path: Path) -> Schemas:
    path = tmp_path / "bid.avsc"
    path.write_text(json.dumps(SCHEMA))
    return Schemas.given(f"{NUMBER}={path}", None, 1.0)


def compared(values: Values, schemas: Schemas, columns: pa.Schema = COLUMNS) -> int:
    """How many the native decoder was sure of."""
    form = Form(topic="t", schema=columns, raw=False, avro=schemas)
    assert takes(form)
    piece = _native_form(form).decoded(values)
    rows, malformed = rows_of(form, 0, piece)
    expected = AvroDecoder(columns, schemas).decode(values)
    assert malformed == [
        Malformed(position=place, reason=reason, raw=values[place])
        for place, reason in expected.bad.items()
    ]
    found = pa.Table.from_batches([rows]).drop_columns([ARRIVAL.name])
    assert found.schema.equals(expected.rows.schema)
    for ours, theirs in zip(found.columns, expected.rows.columns, strict=True):
        assert shown(ours) == shown(theirs)
    return len(values) - len(piece.doubtful)


def shown(column: pa.ChunkedArray) -> str:
    """NaN is NaN; times are numbers, because few of them are dates that Python knows."""
    is_time = pa.types.is_timestamp(column.type)
    return repr((column.cast(pa.int64()) if is_time else column).to_pylist())


def changed(rng: random.Random, record: bytes) -> bytes:
    """With a few bytes others, missing or doubled."""
    found = bytearray(record)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(found))
        how = rng.randrange(4)
        if how == 0:
            found[place] = rng.randrange(256)
        elif how == 1:
            found[place] ^= 1 << rng.randrange(8)
        elif how == 2:
            del found[place : place + rng.randint(1, 3)]
        else:
            found[place:place] = found[place : place + rng.randint(1, 9)]
        found = found or bytearray(b"\0")
    return bytes(found)


def test_whole_records_are_beyond_doubt(schemas: Schemas) -> None:
    other = {**ROW, "s": None, "yes": None, "kind": "phone", "list": [], "map": {}, "either": 5}
    assert compared([written(ROW), written(other)] * 10, schemas) == 20


def test_what_is_no_record_is_what_the_reference_says(schemas: Schemas) -> None:
    good = written(ROW)
    cut: Values = [good[:length] for length in range(len(good))]
    assert compared([None, good + b"\0", written(ROW, number=8), *cut], schemas) == 0


def test_ten_thousand_mutated_records_are_judged_alike(schemas: Schemas) -> None:
    rng = random.Random(22)
    good = [written(ROW), written({**ROW, "s": "", "maybe": None, "n": 1 << 30, "again": None})]
    values: Values = [changed(rng, rng.choice(good)) for _ in range(10_000)]
    sure = sum(compared(values[at : at + 500], schemas) for at in range(0, len(values), 500))
    assert sure > 1000, "so few say nothing"


def test_columns_that_nobody_reads_are_stepped_over(schemas: Schemas) -> None:
    few = pa.schema([("price", pa.float32()), ("n", pa.int32())])
    rng = random.Random(23)
    values: Values = [changed(rng, written(ROW)) for _ in range(2_000)]
    compared([written(ROW), *values], schemas, few)


def test_a_missing_field_of_a_required_column_is_malformed(schemas: Schemas) -> None:
    required = pa.schema([pa.field("maybe", pa.float64(), nullable=False)])
    assert compared([written(ROW), written({**ROW, "maybe": None})], schemas, required) == 1

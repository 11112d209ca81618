import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.errors import SpillwayError
from spillway.logs.json_rows import JsonDecoder

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
RECORDS = [
    b'{"n": 1, "s": "a", "other": [1, {"x": 2}]}',
    b'{"s": "only"}',
    b'{"n": 2,\n "s": "on two lines"}',
    b'{"at": "2026-01-31T12:00:00.5Z"}',
    b"{}",
    b'{"n": "text"}',
    b'{"n": 1.5}',
    b'{"n": 1',
    b"",
    b"null",
    b"5",
    b"[]",
    None,
    b'{"n": 1}{"n": 2}',
    b'{"n": 1}}\n{"v": {"n": 2}',
    b'{"n": 1, "n": 2}',
    b'{"s": "\xff\xfe"}',
    b'{"s": "',
    b'"}',
    b'{"at": 5}',
    b'{"s": "\\ud800"}',
    b"\x00",
]
GOOD = 5


@pytest.mark.parametrize("value", RECORDS[:GOOD])
def test_records_of_the_schema_are_rows(value: bytes) -> None:
    assert JsonDecoder(SCHEMA).decode([value]).rows.num_rows == 1


@pytest.mark.parametrize("value", RECORDS[GOOD:])
def test_other_records_are_malformed_with_a_reason(value: bytes | None) -> None:
    decoded = JsonDecoder(SCHEMA).decode([value])
    assert decoded.rows.num_rows == 0
    assert decoded.bad[0]
    assert "\n" not in decoded.bad[0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(RECORDS), max_size=30))
def test_a_verdict_does_not_depend_on_the_neighbours(values: list[bytes | None]) -> None:
    decoder = JsonDecoder(SCHEMA)
    together = decoder.decode(values)
    alone = [decoder.decode([value]) for value in values]
    assert together.good == [index for index, one in enumerate(alone) if not one.bad]
    rows = [row for one in alone for row in one.rows.to_pylist()]
    assert together.rows.to_pylist() == rows


def test_dates_are_read_and_a_missing_required_field_is_malformed() -> None:
    schema = pa.schema([pa.field("day", pa.date32()), pa.field("n", pa.int64(), nullable=False)])
    values = [b'{"day": "2026-01-31", "n": 1}', b'{"day": "2026-01-31"}', b'{"day": "x", "n": 1}']
    decoded = JsonDecoder(schema).decode(values)
    assert decoded.good == [0]
    assert str(decoded.rows.column("day")[0]) == "2026-01-31"
    assert decoded.bad[1] == "field 'n' is missing"


def test_binary_columns_are_refused_by_name() -> None:
    with pytest.raises(SpillwayError, match="column 'b' is binary"):
        JsonDecoder(pa.schema([("b", pa.binary())]))


def test_rows_keep_their_order_around_malformed_ones() -> None:
    values = [b"bad" if n % 3 == 0 else json.dumps({"n": n}).encode() for n in range(100)]
    decoded = JsonDecoder(SCHEMA).decode(values)
    assert decoded.rows.column("n").to_pylist() == [n for n in range(100) if n % 3]
    assert list(decoded.bad) == list(range(0, 100, 3))

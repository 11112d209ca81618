"""The native decoder against the reference: same rows, same malformed records, one by one."""

import json
import random

import pyarrow as pa
import pytest

from fuzz.mutations import bytes_of, json_of
from spillway.logs.dead_letters import Malformed
from spillway.logs.json_rows import JsonDecoder
from spillway.logs.kafka_form import Form
from spillway.logs.kafka_native import rows_of, takes
from spillway.logs.schema import ARRIVAL

native = pytest.importorskip("spillway_native", reason="no native reader: run make native")

SCHEMA = pa.schema(
    [
        pa.field("yes", pa.bool_()),
        pa.field("tiny", pa.int8()),
        pa.field("small", pa.int16()),
        pa.field("middle", pa.int32()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("short", pa.float32()),
        pa.field("x", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
    ]
)
WHOLE = {
    "yes": True,
    "tiny": -128,
    "small": 32767,
    "middle": -2147483648,
    "n": 9223372036854775807,
    "short": 1.5,
    "x": -12.75e-3,
    "s": 'a "quoted" text,\nß and \U0001f600',
    "day": "2024-02-29",
    "at": "2026-01-31T12:00:00.123456+02:30",
    "local": "2026-01-31 12:00:00",
    "other": {"deep": [1, -0.5e7, {"a": "\\ \u00df"}, [], {}, None, True, False]},
}
PLAIN = {name: WHOLE[name] for name in ("n", "s", "x")} | {"other": [{"a": "ä"}, 1]}
SEEDS = tuple(
    json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    for value in (PLAIN, {**WHOLE, "other": 1}, {"n": 1}, {"n": 0, "at": "1999-12-31T23:59:59Z"})
    for ascii_only in (True, False)
    for separators in ((",", ":"), (" , ", " :\t"))
)
ODD = {
    "n": ("-0", "007", "1.0", "1e2", "9223372036854775808", "+1", "1 2", '"1"', "true", "0x1"),
    "tiny": ("128", "-129", "-0"),
    "x": ("1", "-0", "-0.0", "1e999", "1e400", "1e-400", "NaN", "Infinity", "1.", ".5", "1E+5"),
    "short": ("3.5e38", "1e-50", "0.1", "16777217"),
    "yes": ("True", "1", '"true"', "tru"),
    "s": ('"\\ud83d"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x"', '"a\tb"', '"\\/"', "1", '""'),
    "day": ('"2023-02-29"', '"1900-02-28"', '"1600-01-01"', '"2026-1-1"', '"2026-01-31 "', "5"),
    "at": (
        *(
            '"2026-01-31"',
            '"2026-01-31T12:00Z"',
            '"2026-01-31T12:00:60Z"',
            '"2026-01-31T24:00:00Z"',
        ),
        *('"2026-01-31T12:00:00+0200"', '"2026-01-31T12:00:00-23:59"', '"2026-01-31t12:00:00z"'),
        *('"2026-01-31T12:00:00.1234567Z"', '"2026-01-31T12:00:00."', '"0001-01-01T00:00:00Z"'),
    ),
    "local": ('"2026-01-31T12:00:00Z"', '"2026-01-31T12:00:00.5"'),
    "other": ('"\\ud83d"', '"\xff"', "01", "1e999", "[1,]", "[1 2]", '{"a":1,"a":2}', "{,}", "nul"),
}


def compared(values: list[bytes | None], schema: pa.Schema = SCHEMA) -> int:
    """How many the native decoder was sure of."""
    form = Form(topic="t", schema=schema, raw=False)
    assert takes(form)
    fields = [(field.name, str(field.type), not field.nullable) for field in schema]
    piece = native.Form.json(fields).decoded(values)
    rows, malformed = rows_of(form, 0, piece)
    expected = JsonDecoder(schema).decode(values)
    assert malformed == [
        Malformed(position=place, reason=reason, raw=values[place])
        for place, reason in expected.bad.items()
    ]
    found = pa.Table.from_batches([rows]).drop_columns([ARRIVAL.name])
    assert found.schema.equals(expected.rows.schema)
    assert repr(found.to_pylist()) == repr(expected.rows.to_pylist())  # also where there is a NaN
    return len(values) - len(piece.doubtful)


def test_whole_records_are_beyond_doubt() -> None:
    values: list[bytes | None] = [json.dumps({**WHOLE, "other": PLAIN}).encode(), b' {"n":1} \n']
    assert compared(values) == 2


@pytest.mark.parametrize("name", ODD)
def test_odd_values_are_what_the_reference_says(name: str) -> None:
    for text in ODD[name]:
        other = "" if name == "n" else '"n":1,'
        compared([f'{{{other}"{name}":{text}}}'.encode("utf-8", "surrogatepass")])


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            b"",
            b"null",
            b"[]",
            b"5",
            b'"n"',
            b"{}",
            b'{"n":1',
            b'{"n":1}}',
            b'{"n":1}{"n":2}',
        ),
        *(b'{"n":1,"n":2}', b'{"x":1}', b'{"n":null}', b'{"\\u006e":1}', b'{"n":1,}', b'{,"n":1}'),
        *(b'{"n":1,"other":1,"other":2}', b'{"n":1}\n', b'\xef\xbb\xbf{"n":1}', b'{"n":1}\x00'),
        *(b'{"n":1,"s":"\xc3\x28"}', b'{"n":1,"other":"\xc3\x28"}', b'{"n":1,"\xff":2}', b"{n:1}"),
        b'{"n":1,"other":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"n":1,"other":' + b"[" * 100_000 + b"}",
    ],
)
def test_odd_records_are_what_the_reference_says(value: bytes | None) -> None:
    compared([value])


def test_ten_thousand_mutated_records_are_judged_alike() -> None:
    rng = random.Random(21)
    values: list[bytes | None] = []
    for number in range(10_000):
        if number % 2:
            values.append(bytes_of(rng, SEEDS))
        else:
            changed = json_of(rng, {**WHOLE, "other": 1})
            values.append(json.dumps(changed).encode("utf-8", "surrogatepass"))
    sure = sum(compared(values[at : at + 500]) for at in range(0, len(values), 500))
    assert sure > 1000, "so few say nothing"


def test_rows_keep_their_order_around_those_that_the_reference_judges() -> None:
    schema = pa.schema([("n", pa.int64())])
    values: list[bytes | None] = [f'{{"n": {n}}}'.encode() for n in range(100)]
    values[::7] = [b'{"\\u006e": -1}'] * 15  # good, but not beyond doubt
    values[3::10] = [b"bad"] * 10
    assert compared(values, schema) < 100

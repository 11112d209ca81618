"""Avro records for tests: one schema with everything that is read and stepped over."""

from copy import deepcopy
from io import BytesIO
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer

NUMBER = 7
COLUMNS = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.float64()),
        ("kind", pa.string()),
        ("n", pa.int64()),
        ("day", pa.date32()),
        ("yes", pa.bool_()),
        ("s", pa.string()),
        ("missing", pa.int32()),
    ]
)
_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "tag", "type": ["null", "string"]}],
}
_OTHERS = {
    "nested": _ORDER,
    "again": ["null", "Order"],
    "list": {"type": "array", "items": ["null", "double", "Order"]},
    "map": {"type": "map", "values": {"type": "array", "items": "int"}},
    "bytes": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "fixed": {"type": "fixed", "name": "Four", "size": 4},
    "either": ["int", "string", "boolean"],
}
_READ = {
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "price": "float",
    "kind": {"type": "enum", "name": "Kind", "symbols": ["web", "phone"]},
    "n": "int",
    "day": {"type": "int", "logicalType": "date"},
    "yes": ["boolean", "null"],
    "s": ["null", "string"],
    "maybe": ["null", "double"],
}
SCHEMA = {
    "type": "record",
    "name": "Bid",
    "namespace": "spillway.tests",
    "fields": [{"name": name, "type": kind} for name, kind in {**_OTHERS, **_READ}.items()],
}
ROW = {
    "nested": {"id": 1, "tag": "a"},
    "again": {"id": 2, "tag": None},
    "list": [None, 1.5, {"id": 3, "tag": "b"}],
    "map": {"x": [1, -2], "ä": []},
    "bytes": b"\x01\x02",
    "fixed": b"four",
    "either": "text",
    "at": 1_769_860_800_000,
    "local": 1_769_860_800_000_005,
    "price": 2.5,
    "kind": "web",
    "n": -5,
    "day": 20_484,
    "yes": True,
    "s": "ß and \U0001f600",
    "maybe": 0.5,
}


def written(row: dict[str, Any], number: int = NUMBER) -> bytes:
    """As a producer with a registry writes it."""
    body = BytesIO()
    schemaless_writer(body, _PARSED, row)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


def _raw(node: Any) -> Any:
    """Without logical types: values are written as the numbers that they are."""
    if isinstance(node, dict):
        return {key: _raw(inner) for key, inner in node.items() if key != "logicalType"}
    return [_raw(inner) for inner in node] if isinstance(node, list) else node


_PARSED = parse_schema(_raw(deepcopy(SCHEMA)))

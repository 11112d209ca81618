"""Raw Kafka records as Arrow columns: the same seven that Spark's own Kafka source has."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])

RAW_COLUMNS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
RAW_HEADERS = pa.field("headers", pa.list_(_HEADER))


RAW_TYPES = {field.name: field.type for field in RAW_COLUMNS.append(RAW_HEADERS)}


def raw_array(
    field: pa.Field, records: Sequence[Any], stamps: Sequence[tuple[int, int]]
) -> pa.Array:
    """One column of records of one partition; `stamps` are their (type, milliseconds)."""
    if field.name in _CONSTANTS and records:
        value = pa.scalar(_CONSTANTS[field.name](records[0]), RAW_TYPES[field.name])
        made = pa.repeat(value, len(records))
    else:
        made = pa.array(_values(field.name, records, stamps), RAW_TYPES[field.name])
    return made.cast(field.type)


_CONSTANTS: Mapping[str, Callable[[Any], Any]] = {
    "topic": lambda record: record.topic(),
    "partition": lambda record: record.partition(),
}


def _values(name: str, records: Sequence[Any], stamps: Sequence[tuple[int, int]]) -> list[Any]:
    if name == "key":
        return [record.key() for record in records]
    if name == "value":
        return [record.value() for record in records]
    if name == "offset":
        return [record.offset() for record in records]
    if name == "timestamp":
        return [milliseconds * 1000 for _, milliseconds in stamps]
    if name == "timestampType":  # Spark counts from -1 (none), the client library from 0
        return [kind - 1 for kind, _ in stamps]
    return [_headers(record) for record in records]


def _headers(record: Any) -> list[dict[str, Any]] | None:
    found = record.headers()
    return [{"key": key, "value": value} for key, value in found] if found else None

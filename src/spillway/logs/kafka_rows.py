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


def raw_array(field: pa.Field, records: Sequence[Any]) -> pa.Array:
    return pa.array(
        [_VALUES[field.name](record) for record in records], RAW_TYPES[field.name]
    ).cast(field.type)


def _spark_timestamp_type(record: Any) -> int:
    """Spark: 0 creation, 1 append, -1 none; the client library counts from none = 0."""
    return int(record.timestamp()[0]) - 1


def _headers(record: Any) -> list[dict[str, Any]] | None:
    found = record.headers()
    return [{"key": key, "value": value} for key, value in found] if found else None


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "key": lambda record: record.key(),
    "value": lambda record: record.value(),
    "topic": lambda record: record.topic(),
    "partition": lambda record: record.partition(),
    "offset": lambda record: record.offset(),
    "timestamp": lambda record: record.timestamp()[1] * 1000,
    "timestampType": _spark_timestamp_type,
    "headers": _headers,
}
RAW_TYPES = {field.name: field.type for field in RAW_COLUMNS.append(RAW_HEADERS)}

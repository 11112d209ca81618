"""The columns a log has against the columns a user asked for."""

import pyarrow as pa

from spillway.errors import SpillwayError

ARRIVAL = pa.field("_arrival", pa.timestamp("us", tz="UTC"), nullable=False)
RESERVED = ("_arrival", "_weight")

BATCH_ROWS = 20_000  # rows in one Arrow batch: large enough for Spark, small enough for the cache


def with_arrival(columns: pa.Schema) -> pa.Schema:
    """The schema of the batches that `read` yields."""
    return columns.append(ARRIVAL)


def conformed(have: pa.Schema, wanted: pa.Schema | None, where: str) -> pa.Schema:
    """The columns to deliver: the wanted ones, each of which the log must be able to give.

    A column may be given as a wider type of the same kind (int to long, float to double, any
    timestamp to microseconds); everything else is refused.
    """
    own = pa.schema([field for field in have if field.name not in RESERVED])
    if wanted is None:
        return pa.schema([pa.field(f.name, _plain(f.type), f.nullable) for f in own])
    for field in wanted:
        if field.name not in own.names:
            raise SpillwayError(
                f"{where} has no column '{field.name}': it has {', '.join(own.names)}"
            )
        if not _gives(own.field(field.name).type, field.type):
            raise SpillwayError(
                f"column '{field.name}' of {where} is {own.field(field.name).type}:"
                f" it cannot be read as {field.type}"
            )
    return wanted


def _plain(kind: pa.DataType) -> pa.DataType:
    """Spark's own form of a type: timestamps in microseconds, plain strings and binaries."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return kind


def _gives(have: pa.DataType, wanted: pa.DataType) -> bool:
    have, plain = _plain(have), _plain(wanted)
    if have == plain:
        return True
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(plain):
        return True
    if pa.types.is_integer(have):
        wider = pa.types.is_integer(plain) and plain.bit_width >= have.bit_width
        return bool(wider or plain == pa.float64())
    return bool(have == pa.float32() and plain == pa.float64())

"""Avro records in the Confluent wire format to Arrow rows: the reference, with fastavro.

A record is a zero byte, the number of its writer's schema in four bytes, and the fields. Whether it
is malformed depends on it and on that schema, never on its neighbours.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
from fastavro import schemaless_reader

from spillway.logs.avro_plans import Part, Plan, UnreadableError, plan_of, require_readable
from spillway.logs.avro_schemas import Schemas
from spillway.logs.json_rows import Decoded

_HEADER_BYTES = 5
_RANGES = {pa.int32(): 31, pa.date32(): 31}  # bits; everything else that is whole has 63


class AvroDecoder:
    """Fields that the columns do not name are stepped over; missing ones are null."""

    def __init__(self, schema: pa.Schema, schemas: Schemas) -> None:
        require_readable(schema)
        self._schema, self._schemas = schema, schemas
        self._known: dict[int, Plan | str] = {}
        for number, _ in schemas.files:
            self._look(number)

    @property
    def plans(self) -> Mapping[int, Plan]:
        """Of the schemas that were met so far."""
        return {n: plan for n, plan in self._known.items() if isinstance(plan, Plan)}

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        rows: list[list[Any]] = []
        good: list[int] = []
        bad: dict[int, str] = {}
        for index, value in enumerate(values):
            try:
                rows.append(self._row(value))
                good.append(index)
            except UnreadableError as error:
                bad[index] = str(error)
        columns = zip(*rows, strict=True) if rows else [[] for _ in self._schema]
        arrays = [_array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        return Decoded(rows=table, good=good, bad=bad)

    def _row(self, value: bytes | None) -> list[Any]:
        if value is None:
            raise UnreadableError("the record has no value")
        if len(value) < _HEADER_BYTES or value[0] != 0:
            raise UnreadableError("the record does not begin with zero and a schema's number")
        number = int.from_bytes(value[1:_HEADER_BYTES], "big")
        plan = self._known.get(number) or self._look(number)
        if isinstance(plan, str):
            raise UnreadableError(f"schema {number} {plan}")
        record = _fields(value, number, plan)
        found: list[Any] = [None] * len(self._schema)
        for part in plan.parts:
            if part.place is not None:
                kind = self._schema.field(part.place).type
                found[part.place] = _fitting(record[part.name], part, kind)
        for field, given in zip(self._schema, found, strict=True):
            if given is None and not field.nullable:
                raise UnreadableError(f"field '{field.name}' is missing")
        return found

    def _look(self, number: int) -> Plan | str:
        text = self._schemas.text(number)
        try:
            made = "is not known" if text is None else plan_of(text, self._schema)
        except UnreadableError as error:
            made = str(error)
        self._known[number] = made
        return made


class _Whole(BytesIO):
    """Never gives fewer bytes than are asked for."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if size is None or size < 0 or len(found) < size:
            raise EOFError
        return found


def _fields(value: bytes, number: int, plan: Plan) -> dict[str, Any]:
    body = _Whole(value[_HEADER_BYTES:])
    try:
        record: Any = schemaless_reader(body, plan.parsed, None)
    except Exception as error:  # whatever bytes lead to that were written otherwise
        raise UnreadableError(
            f"the record does not fit schema {number} ({type(error).__name__})"
        ) from error
    if body.tell() != len(value) - _HEADER_BYTES:
        raise UnreadableError(f"the record is longer than schema {number} says")
    return dict(record)


def _fitting(value: Any, part: Part, kind: pa.DataType) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    scaled, bits = value * part.scale, _RANGES.get(kind, 63)
    if not -(1 << bits) <= scaled < 1 << bits:
        raise UnreadableError(f"field '{part.name}' is {value}, which is no {kind}")
    return scaled


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)

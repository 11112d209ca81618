"""What becomes of the fields of an Avro record: which go to a column, and how the others are
stepped over. Made once for a writer's schema and the columns that are read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from spillway.errors import SpillwayError

_SIMPLE = ("null", "boolean", "int", "long", "float", "double", "string", "bytes")
_MOST_SHAPES = 10_000  # of one schema
_INSTANT, _WALL_CLOCK = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
READ_AS: dict[tuple[str, str | None], dict[pa.DataType, int]] = {  # type, logical type: scale
    ("boolean", None): {pa.bool_(): 1},
    ("int", None): {pa.int32(): 1, pa.int64(): 1},
    ("long", None): {pa.int64(): 1},
    ("float", None): {pa.float32(): 1, pa.float64(): 1},
    ("double", None): {pa.float64(): 1},
    ("string", None): {pa.string(): 1},
    ("enum", None): {pa.string(): 1},
    ("int", "date"): {pa.date32(): 1},
    ("long", "timestamp-millis"): {_INSTANT: 1000},
    ("long", "timestamp-micros"): {_INSTANT: 1},
    ("long", "local-timestamp-millis"): {_WALL_CLOCK: 1000},
    ("long", "local-timestamp-micros"): {_WALL_CLOCK: 1},
}

# What stands in the bytes: ("long",), ("array", items), ("union", branch, ...), ("enum", name, ...)
Shape = tuple[Any, ...]


class UnreadableError(Exception):
    """No record of this schema can be read, and why."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A field. `place`: its column's; whole numbers are multiplied by `scale`."""

    name: str
    shape: Shape
    place: int | None = None
    scale: int = 1
    widens: bool = False  # a float that becomes a double


@dataclass(frozen=True, kw_only=True)
class Plan:
    parts: tuple[Part, ...]
    parsed: Any  # for fastavro: without logical types


def require_readable(schema: pa.Schema) -> None:
    """Raise for columns that no field can become."""
    known = {kind for kinds in READ_AS.values() for kind in kinds}
    for field in schema:
        if field.type not in known:
            raise SpillwayError(
                f"column '{field.name}' is {field.type}: Avro records are read as"
                f" {', '.join(sorted(map(str, known)))}; leave the column out, or read the bytes"
                " with option 'decode' = 'raw'"
            )


def plan_of(text: str, columns: pa.Schema) -> Plan:
    """Raises UnreadableError for a schema with which these columns cannot be read."""
    try:
        written = json.loads(text)
        parsed = parse_schema(_plain(written))
        record = parse_schema(written)
    except (ValueError, RecursionError, SchemaParseException, UnknownType, KeyError, TypeError):
        raise UnreadableError("is no Avro schema") from None
    if not isinstance(record, dict) or record.get("type") != "record":
        raise UnreadableError("is not of records")
    shapes = _Shapes()
    fields = shapes.of(record)[1:]
    parts = zip(record["fields"], fields, strict=True)
    made = tuple(_part(field, shape, columns, shapes.named) for field, shape in parts)
    return Plan(parts=made, parsed=parsed)


def _part(field: Any, shape: Shape, columns: pa.Schema, named: dict[str, Any]) -> Part:
    name = field["name"]
    if name not in columns.names:
        return Part(name=name, shape=shape)
    place, kind = columns.names.index(name), columns.field(name).type
    written = _kind_of(field["type"], named)
    scales = READ_AS.get(written) or READ_AS.get((written[0], None), {})
    if kind not in scales:
        said = written[1] or written[0]
        raise UnreadableError(f"has field '{name}' as {said}: it cannot be read as {kind}")
    widens = written[0] == "float" and kind == pa.float64()
    return Part(name=name, shape=shape, place=place, scale=scales[kind], widens=widens)


def _kind_of(node: Any, named: dict[str, Any]) -> tuple[str, str | None]:
    """Type and logical type, where null may stand beside it."""
    if isinstance(node, list):
        others = [branch for branch in node if branch != "null"]
        return _kind_of(others[0], named) if len(others) == 1 else ("union", None)
    if isinstance(node, str):
        return (node, None) if node in _SIMPLE else _kind_of(named[node], named)
    kind = node["type"]
    if not isinstance(kind, str):
        return _kind_of(kind, named)
    logical = node.get("logicalType")
    return kind, logical if (kind, logical) in READ_AS else None


class _Shapes:
    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self._open: list[str] = []
        self._count = 0

    def of(self, node: Any) -> Shape:
        self._count += 1
        if self._count > _MOST_SHAPES:
            raise UnreadableError(f"has more than {_MOST_SHAPES:,} parts")
        if isinstance(node, list):
            return "union", *map(self.of, node)
        if isinstance(node, str):
            return (node,) if node in _SIMPLE else self._of_type(self.named[node])
        return self._of_type(node)

    def _of_type(self, node: Any) -> Shape:
        kind, name = node["type"], node.get("name")
        if name is not None:
            self.named[name] = node
        if kind in ("record", "error"):
            return "record", *self._fields(node)
        if kind == "enum":
            return "enum", *node["symbols"]
        if kind == "fixed":
            return "fixed", node["size"]
        if kind == "array":
            items = self.of(node["items"])
            if _least_bytes(items) == 0:  # a few bytes could say that there are billions
                raise UnreadableError("has an array of what takes no bytes")
            return "array", items
        return ("map", self.of(node["values"])) if kind == "map" else self.of(kind)

    def _fields(self, node: Any) -> Iterator[Shape]:
        if node["name"] in self._open:
            raise UnreadableError(f"is recursive: {node['name']} is inside of itself")
        self._open.append(node["name"])
        yield from [self.of(field["type"]) for field in node["fields"]]
        self._open.pop()


def _least_bytes(shape: Shape) -> int:
    if shape[0] == "record":
        return sum(map(_least_bytes, shape[1:]))
    if shape[0] == "fixed":
        return int(shape[1])
    return 0 if shape[0] == "null" else 1


def _plain(node: Any) -> Any:
    """Without logical types: numbers stay numbers."""
    if isinstance(node, list):
        return [_plain(inner) for inner in node]
    if isinstance(node, dict):
        return {key: _plain(inner) for key, inner in node.items() if key != "logicalType"}
    return node

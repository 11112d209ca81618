"""Spark's types as they are written in DDL, read without Spark."""

import re
from collections.abc import Callable, Mapping

from pyspark.sql import types

from spillway.errors import SpillwayError, nearest_of, shown

_ATOMIC: Mapping[str, types.DataType] = {
    "boolean": types.BooleanType(),
    **dict.fromkeys(("tinyint", "byte"), types.ByteType()),
    **dict.fromkeys(("smallint", "short"), types.ShortType()),
    **dict.fromkeys(("int", "integer"), types.IntegerType()),
    **dict.fromkeys(("bigint", "long"), types.LongType()),
    **dict.fromkeys(("float", "real"), types.FloatType()),
    "double": types.DoubleType(),
    **dict.fromkeys(("decimal", "dec", "numeric"), types.DecimalType(10, 0)),
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "date": types.DateType(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), types.TimestampType()),
    "timestamp_ntz": types.TimestampNTZType(),
    "variant": types.VariantType(),
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(([0-9]{1,3})(?:,(-?[0-9]{1,3}))?\)")
_SIZED = re.compile(r"(?:character|char|varchar)\([0-9]{1,9}\)")
_NESTED = re.compile(r"(array|map|struct)<(.*)>")
_FIELD = re.compile(r"(`[^`]+`|\w+)[: ](.+)")
_MOST_DEPTH = 16
_MOST_TEXT = 10_000


def spark_type(text: str) -> types.DataType:
    """'array<decimal(10, 2)>' as a type; raises with the nearest name where it is none."""
    if len(text) > _MOST_TEXT:
        raise _unknown(text)
    spaced = re.sub(r"\s*([<>(),:])\s*", r"\1", " ".join(text.lower().split()))
    return _read(spaced, _MOST_DEPTH)


def _read(text: str, depth: int) -> types.DataType:
    if text in _ATOMIC:
        return _ATOMIC[text]
    if decimal := _DECIMAL.fullmatch(text):
        precision, scale = int(decimal[1]), int(decimal[2] or 0)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise SpillwayError(
                f"type '{text}' has no such digits: a decimal has 1 to 38, and no more of them"
                " behind the point"
            )
        return types.DecimalType(precision, scale)
    if _SIZED.fullmatch(text):
        return types.StringType()
    nested = _NESTED.fullmatch(text)
    if nested is None or depth == 0:
        raise _unknown(text)
    return _MAKE[nested[1]](text, _split(nested[2]), depth - 1)


def _array(text: str, parts: list[str], depth: int) -> types.DataType:
    if len(parts) != 1:
        raise _unknown(text)
    return types.ArrayType(_read(parts[0], depth))


def _map(text: str, parts: list[str], depth: int) -> types.DataType:
    if len(parts) != 2:
        raise _unknown(text)
    return types.MapType(_read(parts[0], depth), _read(parts[1], depth))


def _struct(text: str, parts: list[str], depth: int) -> types.DataType:
    fields = []
    for part in parts if parts != [""] else []:
        found = _FIELD.fullmatch(part)
        if found is None:
            raise _unknown(text)
        kind = found[2].removesuffix(" not null")
        fields.append(types.StructField(found[1].strip("`"), _read(kind, depth)))
    return types.StructType(fields)


_MAKE: Mapping[str, Callable[[str, list[str], int], types.DataType]] = {
    "array": _array,
    "map": _map,
    "struct": _struct,
}


def _split(text: str) -> list[str]:
    """At the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _unknown(text: str) -> SpillwayError:
    known = [*_ATOMIC, *_MAKE]
    near = nearest_of(text, known)
    hint = f"did you mean '{near}'? " if near else ""
    return SpillwayError(
        f"'{shown(text)}' is no type of Spark SQL: {hint}known are {', '.join(_ATOMIC)},"
        " decimal(10,2), varchar(9), array<...>, map<...,...> and struct<name: type, ...>"
    )

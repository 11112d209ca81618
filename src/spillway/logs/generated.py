"""Columns whose values are pure functions of (seed, column, position)."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.errors import SpillwayError, require, shown, unknown_name
from spillway.model import parse_duration_s

Words = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

DEFAULT_COLUMNS = "id position, key key(1000), value double(0, 1), event_time time"

_COLUMN = re.compile(r"(\w+) (\w+) ?(?:\(([^)]*)\) ?)?(?:, ?|$)", re.ASCII)  # one space each
_MOST_COLUMNS = 1000
_MOST_STRINGS = 1_000_000
_GUIDE_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a column may depend on."""

    positions: Positions  # of the whole stream, so that partitions differ
    arrival_us: Positions
    words: Words  # 64 random bits a row


@dataclass(frozen=True, kw_only=True)
class GeneratedColumn:
    name: str
    type: pa.DataType
    values: Callable[[Rows], Any]  # a numpy or Arrow array


def parse_columns(text: str) -> tuple[GeneratedColumn, ...]:
    """'id position, key key(1000, 1.2), price double(0, 100)': name, kind, arguments."""
    columns: list[GeneratedColumn] = []
    text, place = " ".join(text.split()), 0
    while place < len(text):
        match = _COLUMN.match(text, place)
        if match is None or len(columns) == _MOST_COLUMNS:
            raise SpillwayError(
                f"option 'columns' cannot be read at '{shown(text[place:])}': it must be up to"
                f" {_MOST_COLUMNS} times"
                " 'name kind(arguments), ...', for example 'key key(1000, 1.2), price double(0, 9)'"
            )
        columns.append(make_column(match[1], match[2], match[3] or "", len(columns)))
        place = match.end()
    names = Counter(column.name.lower() for column in columns)
    twice = next((name for name, count in names.items() if count > 1), "")
    require(not twice, "column of option 'columns'", twice, "there once: Spark ignores the case")
    require(len(columns) > 0, "option 'columns'", text, "at least one column")
    return tuple(columns)


def make_column(name: str, kind: str, arguments: str, index: int) -> GeneratedColumn:
    if kind not in KINDS:
        raise unknown_name(f"kind of column '{shown(name)}'", kind, KINDS)
    given = [part.strip() for part in arguments.split(",") if part.strip()]
    try:
        made_type, values = KINDS[kind](given, index)
    except (ValueError, IndexError, OverflowError):
        raise SpillwayError(
            f"column '{shown(name)}' is {kind}({shown(arguments)}):"
            f" it must be like {EXAMPLES[kind]}"
        ) from None
    return GeneratedColumn(name=name, type=made_type, values=values)


def columns_for(schema: pa.Schema) -> tuple[GeneratedColumn, ...]:
    """Default generators for a wanted schema, by type."""
    return tuple(_for_type(field, index) for index, field in enumerate(schema))


def _for_type(field: pa.Field, index: int) -> GeneratedColumn:
    values = _values_of(field.type, field.name, index)
    return GeneratedColumn(name=field.name, type=field.type, values=values)


def _values_of(kind: pa.DataType, name: str, index: int) -> Callable[[Rows], Any]:
    """Values of a type; parts of nested ones draw bits of their own."""
    if pa.types.is_struct(kind):
        parts = [_values_of(part.type, name, _part(index, n)) for n, part in enumerate(kind)]
        return lambda rows: pa.StructArray.from_arrays(
            [converted(values(rows), part.type) for values, part in zip(parts, kind, strict=True)],
            fields=list(kind),
        )
    if pa.types.is_list(kind):
        inner = _values_of(kind.value_type, name, _part(index, 0))
        return lambda rows: pa.ListArray.from_arrays(
            pa.array(range(len(rows.positions) + 1), pa.int32()),
            converted(inner(rows), kind.value_type),
            type=kind,
        )
    if pa.types.is_boolean(kind):
        return lambda rows: (_mixed(rows, index) & np.uint64(1)).astype(bool)
    made, arguments = next(((m, a) for fits, m, a in _BY_TYPE if fits(kind)), (None, ""))
    if made is None:
        raise SpillwayError(
            f"column '{name}' is {kind}: the synthetic log generates numbers, booleans, strings,"
            " binaries, dates and timestamps, and structures and lists of these"
        )
    return make_column(name, made, arguments, index).values


def converted(values: Any, kind: pa.DataType) -> pa.Array:
    """Generated values as a column's type; times are microseconds."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_timestamp(kind):
        return array.view(pa.timestamp("us", tz="UTC")).cast(kind)
    if pa.types.is_date(kind):
        return array.view(pa.timestamp("us")).cast(kind, safe=False)
    return array if array.type == kind else array.cast(kind, safe=False)


def _part(index: int, number: int) -> int:
    return 1000 * (index + 1) + number


# What fits a type, the kind of its values, and the kind's arguments.
_BY_TYPE: tuple[tuple[Callable[[pa.DataType], bool], str, str], ...] = (
    (pa.types.is_int8, "key", "100"),
    (pa.types.is_integer, "key", ""),
    (pa.types.is_floating, "double", ""),
    (pa.types.is_decimal, "double", "0, 0.5"),
    (pa.types.is_string, "string", ""),
    (pa.types.is_binary, "string", ""),
    (pa.types.is_timestamp, "time", ""),
    (pa.types.is_date, "time", ""),
)


def random_words(positions: Positions, seed: int) -> Words:
    """64 random bits for every (seed, position)."""
    return _scrambled(positions.astype(np.uint64), seed)


def _mixed(rows: Rows, index: int) -> Words:
    """A column's own bits: the row's, scrambled once more with the column's number."""
    return _scrambled(rows.words.copy(), -1 - index)


def _scrambled(z: Words, salt: int) -> Words:
    """SplitMix64's finaliser over (z, salt), in place."""
    z ^= np.uint64(((salt + 1) * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) & (2**64 - 1))
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _unit(rows: Rows, index: int) -> npt.NDArray[np.float64]:
    """Uniform in [0, 1), 53 bits."""
    return (_mixed(rows, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53


_Made = tuple[pa.DataType, Callable[[Rows], Any]]


def _position(given: list[str], index: int) -> _Made:
    return pa.int64(), lambda rows: rows.positions


def _int(given: list[str], index: int) -> _Made:
    low, high = (int(given[0]), int(given[1])) if given else (0, 1000)
    if high <= low or not -(2**53) <= low < high <= 2**53:
        raise ValueError
    width = high - low
    return pa.int64(), lambda rows: (_unit(rows, index) * width).astype(np.int64) + low


def _double(given: list[str], index: int) -> _Made:
    low, high = (float(given[0]), float(given[1])) if given else (0.0, 1.0)
    if not low < high or not isfinite(high - low):
        raise ValueError
    return pa.float64(), lambda rows: _unit(rows, index) * (high - low) + low


def _key(given: list[str], index: int) -> _Made:
    draw = _zipf_of(given)
    return pa.int64(), lambda rows: draw(_mixed(rows, index))


def _string(given: list[str], index: int) -> _Made:
    draw = _zipf_of(given)
    if draw.count > _MOST_STRINGS:
        raise ValueError
    names = pa.array([f"k{number:06d}" for number in range(draw.count)])
    return pa.string(), lambda rows: names.take(pa.array(draw(_mixed(rows, index))))


def _time(given: list[str], index: int) -> _Made:
    """Event time: the arrival, or up to a duration before it."""
    kind = pa.timestamp("us", tz="UTC")
    if not given:
        return kind, lambda rows: rows.arrival_us
    late_us = parse_duration_s(given[0], "lateness of an event time") * 1e6
    return kind, lambda rows: rows.arrival_us - (_unit(rows, index) * late_us).astype(np.int64)


KINDS: Mapping[str, Callable[[list[str], int], _Made]] = {
    "position": _position,
    "int": _int,
    "double": _double,
    "key": _key,
    "string": _string,
    "time": _time,
}
EXAMPLES: Mapping[str, str] = {
    "position": "position",
    "int": "int(0, 100), from the first number up to but without the second",
    "double": "double(0, 100), the second number above the first",
    "key": "key(1000) or key(1000, 1.2): how many keys and the Zipf exponent (0: all alike)",
    "string": "string(1000) or string(1000, 1.2): how many strings and the Zipf exponent",
    "time": "time or time(5s): event times up to that long before the arrival",
}


@dataclass(frozen=True, kw_only=True)
class Zipf:
    """Keys 0, 1, ...: key k with probability in proportion to (k + 1)^-exponent.

    Inverse of the distribution function by a guide table: most draws fall into a cell that lies
    within one key, the others are searched for, so that the law is exact.
    """

    count: int
    cumulative: npt.NDArray[np.float64]
    lowest: npt.NDArray[np.int64]
    single: npt.NDArray[np.bool]

    def __call__(self, words: Words) -> Positions:
        cells = (words >> np.uint64(64 - _GUIDE_BITS)).astype(np.int64)
        keys = self.lowest[cells]
        unsure = np.flatnonzero(~self.single[cells])
        if len(unsure):
            uniform = (words[unsure] >> np.uint64(11)).astype(np.float64) * 2.0**-53
            keys[unsure] = np.searchsorted(self.cumulative, uniform, "right")
        return keys


def _zipf_of(given: list[str]) -> Zipf:
    count = int(given[0]) if given else 1000
    exponent = float(given[1]) if len(given) > 1 else 1.0
    if not (1 <= count <= 10_000_000 and 0.0 <= exponent < 100.0):
        raise ValueError
    return zipf(count, exponent)


@lru_cache(maxsize=16)
def zipf(count: int, exponent: float) -> Zipf:
    shares = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    cumulative = np.cumsum(shares / shares.sum())
    cumulative[-1] = 1.0
    edges = np.arange(2**_GUIDE_BITS + 1) / 2**_GUIDE_BITS
    at_edges = np.searchsorted(cumulative, edges, "right")
    highest = np.searchsorted(cumulative, edges[1:], "left")
    return Zipf(
        count=count, cumulative=cumulative, lowest=at_edges[:-1], single=at_edges[:-1] == highest
    )

"""The time windows of a query: window(column, length, slide, start), read from its SQL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spillway.flow.sql import TIME_WINDOW

_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PIECE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+?)s?(?=\s|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeWindow:
    """Windows [start + n slide, start + n slide + length), counted from 1970 as Spark does."""

    column: str
    length_us: int
    slide_us: int
    start_us: int = 0

    @property
    def tumbling(self) -> bool:
        return self.slide_us == self.length_us


def is_time_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == TIME_WINDOW


def time_windows(tree: exp.Expr) -> Iterator[TimeWindow]:
    """Every window of the query whose durations are written as literals."""
    for node in tree.find_all(exp.Anonymous):
        found = time_window(node) if is_time_window(node) else None
        if found is not None:
            yield found


def time_window(node: exp.Expr) -> TimeWindow | None:
    """None where a part is no literal, or no duration that has the same length every month."""
    column, *durations = node.expressions
    found = [us for us in map(_interval_us, durations) if us is not None]
    if not found or len(found) < len(durations) or not isinstance(column, exp.Column):
        return None
    length_us, slide_us, start_us = (*found, *(found[0], 0)[len(found) - 1 :])
    return TimeWindow(column=column.name, length_us=length_us, slide_us=slide_us, start_us=start_us)


def _interval_us(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        return interval_us(f"{node.this.name} {unit.name if unit else ''}")
    return interval_us(node.name) if isinstance(node, exp.Literal) else None


def interval_us(text: str) -> int | None:
    """'1 minute 30 seconds' in microseconds; None for what is no such interval."""
    rest, total = text.strip().lower().removeprefix("interval "), 0.0
    while rest:
        match = _PIECE.match(rest)
        if match is None or match[2] not in _UNITS_US:
            return None
        total += float(match[1]) * _UNITS_US[match[2]]
        rest = rest[match.end() :].strip()
    return round(total)


def shown(length_us: int) -> str:
    """A duration as it would be written in a flow file."""
    for unit, size in (("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)):
        if length_us % size == 0:
            return f"{length_us // size}{unit}"
    return f"{length_us}us"

"""What a line of the journal says."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.model import Decided, Decision, Measurement


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that is no decision: a start, a restart, a loop that went away.

    Kind `lost` says how many `lines` could not be written before this time.
    """

    time_s: float
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Entry = Decided | Event

# What reading a line of a damaged file may raise.
DAMAGED = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError),
    *(RecursionError, SpillwayError),
)


def encoded(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Event):
        return {"event": entry.kind, "time_s": entry.time_s, **entry.fields}
    measured = to_json(Measurement, entry.measurement)
    return {"measurement": measured, "decision": to_json(Decision, entry.decision)}


def entries_of(line: bytes) -> Iterator[Entry]:
    """Raises one of DAMAGED where the line is none of a journal."""
    value = json.loads(line)
    lost = value.pop("lost_lines", 0)
    if type(lost) is not int:
        raise TypeError("lost_lines is no number")
    if lost:
        yield Event(time_s=time_of(value), kind="lost", fields={"lines": lost})
    if "event" in value:
        time_s = time_of(value)
        kind, _ = value.pop("event"), value.pop("time_s")
        if not isinstance(kind, str):
            raise TypeError("event is no text")
        yield Event(time_s=time_s, kind=kind, fields=value)
    else:
        yield Decided(
            measurement=from_json(Measurement, value["measurement"]),
            decision=from_json(Decision, value["decision"]),
        )


def time_of(value: Mapping[str, Any]) -> float:
    """When a line was written, from its JSON value."""
    time_s = value["time_s"] if "event" in value else value["measurement"]["time_s"]
    if type(time_s) not in (int, float) or not isfinite(time_s):
        raise TypeError("time_s is no time")
    return float(time_s)

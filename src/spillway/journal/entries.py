"""What a line of the journal says."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spillway.coding import from_json, to_json
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


def encoded(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Event):
        return {"event": entry.kind, "time_s": entry.time_s, **entry.fields}
    measured = to_json(Measurement, entry.measurement)
    return {"measurement": measured, "decision": to_json(Decision, entry.decision)}


def entries_of(line: bytes) -> Iterator[Entry]:
    """Raises ValueError, TypeError or KeyError where the line is none of a journal."""
    value = json.loads(line)
    lost = value.pop("lost_lines", 0)
    if lost:
        yield Event(time_s=time_of(value), kind="lost", fields={"lines": lost})
    if "event" in value:
        kind, time_s = value.pop("event"), value.pop("time_s")
        yield Event(time_s=time_s, kind=kind, fields=value)
    else:
        yield Decided(
            measurement=from_json(Measurement, value["measurement"]),
            decision=from_json(Decision, value["decision"]),
        )


def time_of(value: Mapping[str, Any]) -> float:
    """When a line was written, from its JSON value."""
    time_s: float = value["time_s"] if "event" in value else value["measurement"]["time_s"]
    return time_s

"""Where a stream starts, and the offsets with which Spark's own Kafka source would go on."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.offsets import decode
from spillway.gate.rules import Stretch
from spillway.ports import Span

_IDENTITY = ("source", "topic", "path")  # what may not change under a checkpoint
_LATEST, _EARLIEST = -1, -2  # Spark's own marks inside offset JSON


def kept_options(options: Mapping[str, str], pinned: Mapping[str, str]) -> dict[str, str]:
    """Of the options of a first start, those that every later one must find in the offset."""
    return {k: v for k, v in pinned.items() if k in _IDENTITY or options.get(k) != v}


def resumed_options(options: Mapping[str, str], pinned: Mapping[str, str]) -> dict[str, str]:
    """The options of a later start, which must be of the same stream."""
    for name in _IDENTITY:
        if name in pinned and options.get(name) != pinned[name]:
            raise SpillwayError(
                f"option '{name}' is '{options.get(name)}', but this checkpoint belongs to"
                f" '{pinned[name]}': keep the option, or start with a new checkpoint"
            )
    return {**options, **pinned}


def first_stretches(
    starting_offsets: str, extent: Iterable[Span], topic: str | None = None
) -> tuple[Stretch, ...]:
    """Empty stretches at the first position to read, for every partition of the log.

    `latest`, `earliest`, or the JSON of Spark's Kafka source, {"topic": {"0": 42}}; a partition
    that the JSON does not name is new and starts at its first position.
    """
    named = _positions(starting_offsets, topic)
    stretches = []
    for span in extent:
        at = named if isinstance(named, int) else named.get(span.partition, _EARLIEST)
        start = {_LATEST: span.stop, _EARLIEST: span.start}.get(at, at)
        if start > span.stop:
            raise SpillwayError(
                f"option 'startingOffsets' names position {start} of partition {span.partition},"
                f" which ends at {span.stop}: are these the offsets of another log?"
            )
        stretches.append(Stretch(partition=span.partition, start=start, read=start, stop=start))
    return tuple(stretches)


def _positions(text: str, topic: str | None) -> int | dict[int, int]:
    if text in ("latest", "earliest"):
        return _LATEST if text == "latest" else _EARLIEST
    try:
        value: Any = json.loads(text)
        [(named, partitions)] = value.items()
        positions = {int(name): int(position) for name, position in partitions.items()}
    except (ValueError, AttributeError, TypeError):
        raise SpillwayError(
            f"option 'startingOffsets' is '{text}': it must be latest, earliest or the offset JSON"
            ' of one topic, for example {"events": {"0": 42, "1": 17}}'
        ) from None
    if topic is not None and named != topic:
        raise SpillwayError(
            f"option 'startingOffsets' is of topic '{named}', but option 'topic' is '{topic}'"
        )
    return positions


def starting_offsets(logged: Any, topic: str) -> dict[str, dict[str, int]]:
    """The `startingOffsets` that go on where a logged offset of a gate or of Spark's ends."""
    if isinstance(logged, dict) and "began_us" not in logged and _is_sparks(logged):
        return logged
    if not isinstance(logged, dict) or "began_us" not in logged:
        raise SpillwayError(f"offset {logged!r} is neither a gate's nor of Spark's Kafka source")
    offset = decode(logged)
    name = topic or offset.pinned.get("topic", "topic")
    return {name: {str(s.partition): s.stop for s in offset.stretches}}


def _is_sparks(logged: dict[str, Any]) -> bool:
    """{topic: {partition: position}}"""
    return all(
        isinstance(partitions, dict)
        and all(name.isdigit() and isinstance(at, int) for name, at in partitions.items())
        for partitions in logged.values()
    )

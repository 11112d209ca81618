"""Where a stream starts, and where it stands, in the words of Spark's Kafka source."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from spillway.errors import SpillwayError, shown
from spillway.gate.offsets import Offset, decode
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule, Stretch
from spillway.handover import NOTHING_YET
from spillway.hosts.spark.planner.stream import identity, kept_options, resumed_options
from spillway.logs import catalog
from spillway.logs.topics import number_of, order_of, place_of, said
from spillway.ports import Span, Starting

_LATEST, _EARLIEST = -1, -2  # Spark's own marks inside offset JSON


def first_offset(
    options: Mapping[str, str], gate: GateOptions, schema: pa.Schema | None, now_s: float
) -> tuple[Offset, tuple[Span, ...]]:
    """Batch 0: no tuples, only the place where the stream starts. And what there was then."""
    if gate.follows is not None:
        return _following_offset(options, gate, schema, now_s)
    pinned = catalog.pinned(options, now_s)
    log = catalog.open_log(pinned, schema)
    pinned |= identity(log)
    extent = log.extent(now_s)
    starts = log.starts(extent) if isinstance(log, Starting) else None
    if starts is None:
        starts = first_positions(gate.starting_offsets, extent, order_of(pinned))
    first = Offset(
        gate=gate.gate or uuid4().hex[:12],
        began_us=round(now_s * 1e6),
        seq=0,
        planned_us=round(now_s * 1e6),
        stretches=tuple(
            Stretch(partition=partition, start=at, read=at, stop=at)
            for partition, at in starts.items()
        ),
        rule=Rule(seed=gate.seed, policy=gate.policy, reason="start"),
        pinned=kept_options(options, pinned),
    )
    return first, extent


def _following_offset(
    options: Mapping[str, str], gate: GateOptions, schema: pa.Schema | None, now_s: float
) -> tuple[Offset, tuple[Span, ...]]:
    """Batch 0 of a query that moves: where the checkpoint before it stood, and silent until it is
    told which windows are its own."""
    assert gate.follows is not None
    origin = decode(json.loads(gate.follows))
    log = catalog.open_log(resumed_options(options, origin.pinned), schema)
    first = Offset(
        gate=gate.gate or uuid4().hex[:12],
        began_us=round(now_s * 1e6),
        seq=0,
        planned_us=round(now_s * 1e6),
        stretches=origin.at_rest(),
        rule=Rule(seed=gate.seed, policy=gate.policy, reason="goes on from another checkpoint"),
        prices=origin.prices,
        pinned={**origin.pinned, **identity(log)},
        owned=NOTHING_YET,
    )
    return first, log.extent(now_s)


def first_positions(
    starting_offsets: str, extent: tuple[Span, ...], topics: Sequence[str] = ()
) -> dict[int, int]:
    """The first position to read of every partition of the log, whose topics these are.

    `latest`, `earliest`, or the JSON of Spark's Kafka source, {"topic": {"0": 42}}; a partition
    that the JSON does not name is new and starts at its first position.
    """
    named = positions_named(starting_offsets, topics)
    there = [span.partition for span in extent]
    for partition in () if isinstance(named, int) else sorted(set(named) - set(there)):
        raise SpillwayError(
            f"option 'startingOffsets' names partition {said(partition, topics)}, but the log has"
            f" only {', '.join(said(each, topics) for each in there)}: leave it out, or are these"
            " the offsets of another log?"
        )
    positions = {}
    for span in extent:
        at = named if isinstance(named, int) else named.get(span.partition, _EARLIEST)
        start = {_LATEST: span.stop, _EARLIEST: span.start}.get(at, at)
        if start > span.stop:
            raise SpillwayError(
                f"option 'startingOffsets' names position {start} of partition"
                f" {said(span.partition, topics)}, which ends at {span.stop}: are these the"
                " offsets of another log?"
            )
        positions[span.partition] = start
    return positions


def positions_named(text: str, topics: Sequence[str] = ()) -> int | dict[int, int]:
    """By partition's number; without topics, of a log with one of any name."""
    if text in ("latest", "earliest"):
        return _LATEST if text == "latest" else _EARLIEST
    try:
        value: Any = json.loads(text)
        order = list(topics) or list(value)
        wrong = next((name for name in value if name not in order), None)
        positions = {
            number_of(order.index(name), int(partition)): _position(partition, at)
            for name, partitions in value.items()
            if name in order
            for partition, at in partitions.items()
        }
        if not value or (len(value) > 1 and not topics):
            raise ValueError
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise SpillwayError(
            f"option 'startingOffsets' is '{shown(text)}': it must be latest, earliest or offset"
            ' JSON, for example {"events": {"0": 42, "1": 17}}'
        ) from None
    if wrong is not None:
        raise SpillwayError(
            f"option 'startingOffsets' is of topic '{shown(wrong)}', but option 'topic' is"
            f" '{','.join(topics)}'"
        )
    return positions


def _position(partition: str, at: Any) -> int:
    if type(at) is not int or not _EARLIEST <= at < 1 << 63:
        raise SpillwayError(
            f"option 'startingOffsets' has {shown(json.dumps(at))} for partition"
            f" {shown(partition)}: it must be an offset of at least 0, -1 for the latest or -2 for"
            " the earliest"
        )
    return at


def starting_offsets(logged: Any, topic: str) -> dict[str, dict[str, int]]:
    """The `startingOffsets` that go on where a logged offset of a gate or of Spark's ends."""
    if isinstance(logged, dict) and "began_us" not in logged and is_sparks(logged):
        return logged
    if not isinstance(logged, dict) or "began_us" not in logged:
        raise SpillwayError(
            f"offset {shown(logged)} is neither a gate's nor of Spark's Kafka source"
        )
    offset = decode(logged)
    topics = order_of(offset.pinned) or ("topic",)
    if topic and len(topics) > 1:
        raise SpillwayError(
            f"this checkpoint reads {len(topics)} topics ({', '.join(topics)}), which it names"
            " itself: leave --topic out"
        )
    found: dict[str, dict[str, int]] = {topic or name: {} for name in topics}
    names = list(found)
    for stretch in offset.stretches:
        place, partition = place_of(stretch.partition)
        found[names[place]][str(partition)] = stretch.stop
    return found


def is_sparks(logged: dict[str, Any]) -> bool:
    """{topic: {partition: position}}"""
    return all(
        isinstance(partitions, dict)
        and all(name.isdecimal() and type(at) is int for name, at in partitions.items())
        for partitions in logged.values()
    )

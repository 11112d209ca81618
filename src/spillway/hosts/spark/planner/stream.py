"""The log behind a gate, as its planner looks at it: where it starts, what waits, what is in it."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa

from spillway.errors import SpillwayError, shown, unknown_name
from spillway.gate.offsets import Offset, decode
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting, survey
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.gate.shedders.planned import selected
from spillway.gate.shedders.shedder import Shedder
from spillway.logs import catalog
from spillway.model import NOTHING_YET
from spillway.ports import Identified, Log, Span

_IDENTITY = ("source", "topic", "path")  # what may not change under a checkpoint
_LATEST, _EARLIEST = -1, -2  # Spark's own marks inside offset JSON
_ARRIVAL = "_arrival"  # every log delivers it

_SHORT_S = 30.0  # a log that ends below our position for so long will not come back


class Stream:
    """`may_fall`: the log's end follows the clock, so a clock that jumps back takes it along."""

    def __init__(
        self,
        log: Log,
        gate: GateOptions,
        may_fall: bool,
        elapsed: Callable[[], float],
        frozen: tuple[Span, ...] | None = None,
    ) -> None:
        self.log = log
        self.identity = identity(log)  # in the offsets of earlier releases it is missing
        self._gate = gate
        self._may_fall = may_fall
        self._elapsed = elapsed
        self._frozen = frozen  # what there was when a run of AvailableNow began
        self._short_since_s: float | None = None  # the log has ended below our position

    def survey(self, previous: Offset, now_s: float, *, frozen: bool = False) -> Waiting:
        """What no batch has consumed; frozen: of what was there at the first look."""
        extent = self.log.extent(now_s) if self._frozen is None or not frozen else self._frozen
        if frozen:
            self._frozen = extent
        self._require_reached(previous, extent)
        waiting = survey(previous, extent, self.log.arrivals)
        if waiting.lost_tuples > 0 and self._gate.fail_on_data_loss:
            raise SpillwayError(
                f"the log dropped {waiting.lost_tuples} tuples before they were read: option"
                " 'failOnDataLoss' is true; set it to false to count them as shed and go on"
            )
        return waiting

    def _require_reached(self, previous: Offset, extent: tuple[Span, ...]) -> None:
        """A lagging replica may end below our position for a moment, a new topic does for good."""
        reached = {s.partition: s.stop for s in previous.stretches}
        short = [span for span in extent if span.stop < reached.get(span.partition, 0)]
        if not short or self._may_fall:
            self._short_since_s = None
            return
        if self._short_since_s is None:
            self._short_since_s = self._elapsed()
        if self._elapsed() - self._short_since_s > _SHORT_S:
            first = short[0]
            raise SpillwayError(
                f"partition {first.partition} of the log ends at {first.stop}, but this checkpoint"
                f" has read up to {reached[first.partition]}: it was cut short or made anew; start"
                " with a new checkpoint"
            )


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


def identity(log: Log) -> dict[str, str]:
    """What tells this log from a later one of its name; raises where it is a later one."""
    return dict(log.identity()) if isinstance(log, Identified) else {}


def require_the_same(
    options: Mapping[str, str], pinned: Mapping[str, str], schema: pa.Schema | None
) -> None:
    """Raise where a batch that was planned by an earlier run would read another log's rows."""
    identity(catalog.open_log(resumed_options(options, pinned), schema))


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
    first = Offset(
        gate=gate.gate or uuid4().hex[:12],
        began_us=round(now_s * 1e6),
        seq=0,
        planned_us=round(now_s * 1e6),
        stretches=first_stretches(gate.starting_offsets, extent, options.get("topic")),
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


def first_stretches(
    starting_offsets: str, extent: tuple[Span, ...], topic: str | None = None
) -> tuple[Stretch, ...]:
    """Empty stretches at the first position to read, for every partition of the log.

    `latest`, `earliest`, or the JSON of Spark's Kafka source, {"topic": {"0": 42}}; a partition
    that the JSON does not name is new and starts at its first position.
    """
    named = positions_named(starting_offsets, topic)
    there = [span.partition for span in extent]
    for partition in () if isinstance(named, int) else sorted(set(named) - set(there)):
        raise SpillwayError(
            f"option 'startingOffsets' names partition {partition}, but the log has only"
            f" {', '.join(map(str, there))}: leave it out, or are these the offsets of another log?"
        )
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


def positions_named(text: str, topic: str | None) -> int | dict[int, int]:
    if text in ("latest", "earliest"):
        return _LATEST if text == "latest" else _EARLIEST
    try:
        value: Any = json.loads(text)
        [(named, partitions)] = value.items()
        positions = {int(name): _position(name, at) for name, at in partitions.items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise SpillwayError(
            f"option 'startingOffsets' is '{shown(text)}': it must be latest, earliest or the"
            ' offset JSON of one topic, for example {"events": {"0": 42, "1": 17}}'
        ) from None
    if topic is not None and named != topic:
        raise SpillwayError(
            f"option 'startingOffsets' is of topic '{named}', but option 'topic' is '{topic}'"
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
    if isinstance(logged, dict) and "began_us" not in logged and _is_sparks(logged):
        return logged
    if not isinstance(logged, dict) or "began_us" not in logged:
        raise SpillwayError(
            f"offset {shown(logged)} is neither a gate's nor of Spark's Kafka source"
        )
    offset = decode(logged)
    name = topic or offset.pinned.get("topic", "topic")
    return {name: {str(s.partition): s.stop for s in offset.stretches}}


def _is_sparks(logged: dict[str, Any]) -> bool:
    """{topic: {partition: position}}"""
    return all(
        isinstance(partitions, dict)
        and all(name.isdecimal() and type(at) is int for name, at in partitions.items())
        for partitions in logged.values()
    )


class Shedding:
    def __init__(
        self, selection: Shedder, options: Mapping[str, str], columns: pa.Schema | Log
    ) -> None:
        schema = columns if isinstance(columns, pa.Schema) else columns.columns()
        wanted = [name for name in selection.columns if name != _ARRIVAL]
        for name in wanted:
            if name not in schema.names:
                raise unknown_name(f"column of shedder '{selection.name}'", name, schema.names)
        self._selection = selection
        self._log = catalog.open_log(options, pa.schema([schema.field(name) for name in wanted]))

    def selected(self, offset: Offset, previous: Offset, led: float | None) -> Offset:
        """The planned offset with its selection; `led` is the share of the gate that leads."""
        limit_ppm = None if led is None else round(led * PPM)
        return selected(offset, previous, self._selection, self._log, limit_ppm=limit_ppm)

    def share(self, offset: Offset, share: float) -> float:
        """What the other gates of a join follow: the limit, so that they keep the same keys."""
        keys = offset.rule.selection.whole_keys if offset.rule.selection else None
        return share if keys is None else keys.limit_ppm / PPM

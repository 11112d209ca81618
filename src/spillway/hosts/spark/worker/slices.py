"""A batch cut into slices, one Spark task each. A slice holds everything that `read` needs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql.datasource import InputPartition

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import BLOCK
from spillway.gate.shedders.blocks import DATA_BLOCK

_ROWS_WORTH_A_TASK = 5_000  # handing a task to a Python worker costs as much as some thousand rows


class Slice(InputPartition):
    """Some stretches of a batch, the rule that thins them, and the weight of each kept tuple."""

    def __init__(
        self,
        stretches: tuple[Stretch, ...],
        rule: Rule,
        *,
        weight: float = 1.0,
        version: int = 0,
        places: Mapping[int, int] | None = None,
        pinned: Mapping[str, str],
        beats_us: int | None = None,
    ) -> None:
        self.stretches = stretches
        self.rule = rule
        self.weight = weight
        self.version = version  # of the instances that the rows may meet
        self.places = dict(places or {})  # by partition: a tuple's place minus its position
        self.pinned = dict(pinned)
        self.beats_us = beats_us  # a heartbeat, and when it was planned


def slices(offset: Offset, parallelism: int) -> list[Slice]:
    """The batch in up to `parallelism` parts of about the same number of tuples.

    The weight is what the batch consumed over what it kept, so weights add up to what was offered.
    A shedder that looks at the data weighs by itself; what it never read is added to that.
    """
    kept = offset.kept_tuples()
    if kept == 0:
        return []
    tasks = max(1, min(parallelism, kept // _ROWS_WORTH_A_TASK))
    by_data = offset.rule.selection is not None
    weight = offset.offered_tuples / (offset.scanned_tuples if by_data else kept)
    return [
        Slice(
            stretches,
            offset.rule,
            weight=weight,
            version=offset.instances,
            places=_places(offset),
            pinned=offset.pinned,
        )
        for stretches in _portions(offset.stretches, tasks, DATA_BLOCK if by_data else BLOCK)
    ]


def _places(offset: Offset) -> dict[int, int]:
    """Places count everything that the gate ever consumed, one stretch after the other."""
    totals, places = offset.totals, {}
    place = totals.admitted + totals.shed - offset.offered_tuples
    for stretch in offset.stretches:
        places[stretch.partition] = place - stretch.start
        place += stretch.tuples
    return places


def heartbeat_slice(offset: Offset) -> Slice:
    """One task that yields a single row: where the stream's event time would be by now."""
    return Slice(offset.stretches, offset.rule, pinned=offset.pinned, beats_us=offset.planned_us)


def _portions(
    stretches: tuple[Stretch, ...], count: int, block: int
) -> Iterator[tuple[Stretch, ...]]:
    """Cut at block boundaries: a block that two tasks share would be ranked twice."""
    total = sum(s.scanned_tuples for s in stretches)
    size = -(-total // count)
    portion: list[Stretch] = []
    room = size
    for stretch in stretches:
        place = stretch.read
        while place < stretch.stop:
            stop = min(stretch.stop, max(place + 1, -(-(place + room) // block) * block))
            portion.append(replace(stretch, start=place, read=place, stop=stop))
            room -= stop - place
            place = stop
            if room <= 0:
                yield tuple(portion)
                portion, room = [], size
    if portion:
        yield tuple(portion)

"""A batch cut into slices, one Spark task each. A slice holds everything that `read` needs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql.datasource import InputPartition

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import BLOCK

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
        pinned: Mapping[str, str],
        beats_us: int | None = None,
    ) -> None:
        self.stretches = stretches
        self.rule = rule
        self.weight = weight
        self.version = version  # of the instances that the rows may meet
        self.pinned = dict(pinned)
        self.beats_us = beats_us  # a heartbeat, and when it was planned


def slices(offset: Offset, parallelism: int) -> list[Slice]:
    """The batch in up to `parallelism` parts of about the same number of tuples.

    The weight is what the batch consumed over what it kept, so weights add up to what was offered.
    """
    kept = offset.kept_tuples()
    if kept == 0:
        return []
    tasks = max(1, min(parallelism, kept // _ROWS_WORTH_A_TASK))
    weight = offset.offered_tuples / kept
    return [
        Slice(
            stretches,
            offset.rule,
            weight=weight,
            version=offset.instances,
            pinned=offset.pinned,
        )
        for stretches in _portions(offset.stretches, tasks)
    ]


def heartbeat_slice(offset: Offset) -> Slice:
    """One task that yields a single row: where the stream's event time would be by now."""
    return Slice(offset.stretches, offset.rule, pinned=offset.pinned, beats_us=offset.planned_us)


def _portions(stretches: tuple[Stretch, ...], count: int) -> Iterator[tuple[Stretch, ...]]:
    """Cut at block boundaries: a block that two tasks share would be ranked twice."""
    total = sum(s.scanned_tuples for s in stretches)
    size = -(-total // count)
    portion: list[Stretch] = []
    room = size
    for stretch in stretches:
        place = stretch.read
        while place < stretch.stop:
            stop = min(stretch.stop, max(place + 1, -(-(place + room) // BLOCK) * BLOCK))
            portion.append(replace(stretch, start=place, read=place, stop=stop))
            room -= stop - place
            place = stop
            if room <= 0:
                yield tuple(portion)
                portion, room = [], size
    if portion:
        yield tuple(portion)

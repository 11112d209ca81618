"""A batch cut into slices, one Spark task each. A slice holds everything that `read` needs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql.datasource import InputPartition

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import BLOCK, PPM
from spillway.gate.shedders.blocks import DATA_BLOCK
from spillway.model import Prices

_ROWS_WORTH_A_TASK = 5_000  # handing a task to a Python worker costs as much as some thousand rows
_WORTH_A_TASK_S = 0.05  # of batch time: few rows are worth it where each waits for an answer


class Slice(InputPartition):
    """Some stretches of a batch, the rule that thins them, and what its rows say beside values."""

    def __init__(
        self,
        stretches: tuple[Stretch, ...],
        rule: Rule,
        *,
        version: int = 0,
        places: Mapping[int, int] | None = None,
        pinned: Mapping[str, str],
        gap_until_us: int | None = None,
        beats_us: int | None = None,
    ) -> None:
        self.stretches = stretches
        self.rule = rule
        self.version = version  # of the instances that the rows may meet
        self.places = dict(places or {})  # by partition: a tuple's place minus its position
        self.pinned = dict(pinned)
        self.gap_until_us = gap_until_us  # arrivals up to then may be missing
        self.beats_us = beats_us  # a heartbeat, and when it was planned

    @property
    def weight(self) -> float:
        """Of each kept tuple; a shedder that looks at the data multiplies it by its own.

        One over the share of positions that the rule keeps, and not the batch's tuples over the
        kept ones: a small batch that keeps one more or less by rounding must not make them lighter
        or heavier. What was never read is nobody's weight: it is a gap.
        """
        return 1.0 if self.rule.selection is not None else PPM / self.rule.keep_ppm


def slices(offset: Offset, parallelism: int) -> list[Slice]:
    """The batch in up to `parallelism` parts of about the same number of tuples."""
    kept = offset.kept_tuples()
    if kept == 0:
        return []
    worth = _rows_worth_a_task(offset.prices)
    tasks = max(1, min(parallelism, kept // worth))
    block = DATA_BLOCK if offset.rule.selection is not None else min(BLOCK, worth)
    return [
        Slice(
            stretches,
            offset.rule,
            version=offset.instances,
            places=_places(offset),
            pinned=offset.pinned,
            gap_until_us=None if offset.gap is None else offset.gap.until_us,
        )
        for stretches in _portions(offset.stretches, tasks, block)
    ]


def _rows_worth_a_task(prices: Prices | None) -> int:
    if prices is None or prices.kept_s <= 0.0:
        return _ROWS_WORTH_A_TASK
    return max(1, min(_ROWS_WORTH_A_TASK, int(_WORTH_A_TASK_S / prices.kept_s)))


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
    """Cut at block boundaries: a block that two tasks share is ranked twice. Beside dear rows that
    is nothing, and their blocks may be smaller than those of the ranks."""
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

"""What a gate consumed of its log, found again by its ledger: positions, times, what was shed."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.gate.offsets import Offset
from spillway.gate.rules import Rule, Stretch
from spillway.gate.shedders.blocks import DATA_BLOCK
from spillway.ports import Log, Span

_LOOK = 256  # positions in which a probe looks for a row
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A part of a batch that shed something, and the rule by which it did."""

    stretch: Stretch
    rule: Rule
    pinned: Mapping[str, str]


class Consumed:
    """One life of a gate. `lateness_s`: no row comes so long after a later one."""

    def __init__(
        self, offsets: Iterable[Offset], log: Log, now_s: float, lateness_s: float
    ) -> None:
        self.log, self._lateness_s = log, lateness_s
        self.pinned: Mapping[str, str] = {}  # options, as the last batch has them
        self._shedding: list[Offset] = []
        self._spans: dict[int, Span] = {}
        for offset in offsets:
            self.pinned = offset.pinned
            for stretch in offset.stretches:
                known = self._spans.get(stretch.partition)
                start = stretch.start if known is None else known.start
                self._spans[stretch.partition] = Span(
                    partition=stretch.partition, start=start, stop=stretch.stop
                )
            if offset.kept_tuples() < offset.offered_tuples:
                self._shedding.append(offset)
        self._there = {span.partition: span for span in log.extent(now_s)}

    def lost(self, since_s: float, until_s: float) -> Iterator[Lost]:
        """The parts of batches that shed and may hold arrivals of this time, where the log still
        has them."""
        reached = {span.partition: span for span in self.between("_arrival", since_s, until_s)}
        for offset in self._shedding:
            for stretch in offset.stretches:
                by_position = offset.rule.selection is None
                unit, first = 1 if by_position else DATA_BLOCK, self._first(stretch.partition)
                part = _cut(stretch, reached.get(stretch.partition), unit, first)
                if part is not None:
                    yield Lost(stretch=part, rule=offset.rule, pinned=offset.pinned)

    def gone_tuples(self) -> int:
        """Of what was shed, what the log has no longer; where a shedder looked at the data, of all
        that those batches held."""
        gone = 0
        for offset in self._shedding:
            for stretch in offset.stretches:
                stop = min(stretch.stop, max(stretch.start, self._first(stretch.partition)))
                before = replace(stretch, read=min(stretch.read, stop), stop=stop)
                by_position = offset.rule.selection is None
                gone += before.tuples - (before.kept_tuples(offset.rule) if by_position else 0)
        return gone

    def between(self, column: str, since_s: float, until_s: float) -> list[Span]:
        """Positions outside of which no row of this time is."""
        found = []
        for span in self._readable():
            start = self._reach(span, column, since_s - self._lateness_s, unknown=math.inf)
            stop = self._reach(span, column, until_s + self._lateness_s, unknown=-math.inf)
            if start < stop:
                found.append(Span(partition=span.partition, start=start, stop=stop))
        return found

    def whole_from_s(self, column: str) -> float:
        """No row from then on has left the log."""
        left = [s for s in self._readable() if s.start > self._spans[s.partition].start]
        if len(self._readable()) < len(self._spans):
            return math.inf
        times_s = [self._time_s(span, span.start, column) for span in left]
        known = [math.inf if time_s is None else time_s for time_s in times_s]
        return max(known) + self._lateness_s if known else -math.inf

    def done_until_s(self, column: str) -> float:
        """Every row before that has been consumed, and the query has closed its windows."""
        last_s = [
            time_s
            for span in self._readable()
            if (time_s := self._last_s(span, column)) is not None
        ]
        return max(last_s) - self._lateness_s if last_s else -math.inf

    def _readable(self) -> list[Span]:
        """Of every partition what was consumed and is still there."""
        return [
            replace(span, start=max(span.start, self._first(partition)))
            for partition, span in self._spans.items()
            if span.stop > self._first(partition)
        ]

    def _first(self, partition: int) -> int:
        there = self._there.get(partition)
        return there.start if there is not None else self._spans[partition].stop

    def _reach(self, span: Span, column: str, time_s: float, unknown: float) -> int:
        """A position near which times reach this one. It is one that was looked at, so what holds
        of it and of how late rows may come holds of all before, or after."""
        if math.isinf(time_s):
            return span.start if time_s < 0.0 else span.stop
        low, high = span.start, span.stop
        while low < high:
            middle = (low + high) // 2
            found_s = self._time_s(replace(span, stop=high), middle, column)
            if (unknown if found_s is None else found_s) < time_s:
                low = middle + 1
            else:
                high = middle
        return low if unknown < 0.0 else max(span.start, low - 1)

    def _time_s(self, span: Span, position: int, column: str) -> float | None:
        """Of the first row from there on."""
        stop = min(span.stop, position + _LOOK)
        wanted = np.arange(position, stop)
        asked = Span(partition=span.partition, start=position, stop=stop)
        for batch in self.log.read(asked, wanted):
            times = times_s(batch, column)
            if len(times):
                return float(times[0])
        return None

    def _last_s(self, span: Span, column: str) -> float | None:
        stop, start = span.stop, max(span.start, span.stop - DATA_BLOCK)
        last = Span(partition=span.partition, start=start, stop=stop)
        tops = [times_s(batch, column) for batch in self.log.read(last, None)]
        return max((float(top.max()) for top in tops if len(top)), default=None)


def times_s(batch: pa.RecordBatch, column: str) -> Floats:
    """Of the rows that have one."""
    times = batch.column(column).drop_null().cast(pa.timestamp("us", tz="UTC"))
    found: Floats = pc.divide(times.cast(pa.int64()).cast(pa.float64()), 1e6).to_numpy(
        zero_copy_only=False
    )
    return found


def _cut(stretch: Stretch, reached: Span | None, unit: int, first: int) -> Stretch | None:
    """At multiples of `unit`, where the log begins at `first`: a shedder looks at whole blocks."""
    if reached is None:
        return None
    start = reached.start // unit * unit
    start = max(stretch.start, start if start >= first else -(-reached.start // unit) * unit)
    stop = min(stretch.stop, -(-reached.stop // unit) * unit)
    if start >= stop:
        return None
    return replace(stretch, start=start, read=min(stop, max(start, stretch.read)), stop=stop)

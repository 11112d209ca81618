"""When the rows of a link first arrived: its records bear that time, in no strict order."""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from spillway.ports import ArrivalCurve, Span

SAMPLES = 8  # of what is new: rows of one batch arrived at an even pace, about
MOST_POINTS = 4096
Look = Callable[[Span, npt.NDArray[np.int64]], list[tuple[int, float]]]


class RecordTimes:
    """Points (position, the time of the record just below it), looked up where one is asked for.

    Offsets by time would be cheaper, but they find the marker that ends a transaction, and its time
    is that of the commit: later than most of what the next transaction holds.
    """

    def __init__(self, look: Look) -> None:
        """`look`: the times of the records at some positions of a span; not all need exist."""
        self._look = look
        self._positions: list[int] = []
        self._times_s: list[float] = []
        self._known: tuple[int, int] | None = None  # from where to where it has been looked up

    def curve(self, span: Span) -> ArrivalCurve:
        if span.tuples:
            self._learn(span)
        if not self._positions:  # nothing is there any more
            ends = np.unique([span.start, span.stop])
            return ArrivalCurve(positions=ends, times_s=np.zeros(len(ends)))
        positions, times_s = np.array(self._positions), np.array(self._times_s)
        inside = positions[(positions > span.start) & (positions < span.stop)]
        points = np.unique(np.concatenate(([span.start], inside, [span.stop]))).astype(np.int64)
        return ArrivalCurve(positions=points, times_s=np.interp(points, positions, times_s))

    def _learn(self, span: Span) -> None:
        start, stop = self._known or (span.start, span.start)
        if span.stop < start or stop < span.start:  # of what lies between nothing is known
            self._positions, self._times_s, start, stop = [], [], span.start, span.start
        if span.start < start:
            self._sample(Span(partition=span.partition, start=span.start, stop=start))
        if span.stop > stop:
            self._sample(Span(partition=span.partition, start=stop, stop=span.stop))
        self._known = min(start, span.start), max(stop, span.stop)
        if len(self._positions) > MOST_POINTS:
            half = MOST_POINTS // 2
            self._positions, self._times_s = self._positions[-half:], self._times_s[-half:]
            self._known = self._positions[0], self._known[1]

    def _sample(self, span: Span) -> None:
        count = min(SAMPLES, span.tuples)  # in the middle of as many parts: a marker is at the end
        steps = (np.arange(count) * 2 + 1) * span.tuples // (2 * count)
        found = self._look(span, span.start + steps)
        at = bisect_left(self._positions, span.start + 1)
        self._positions[at:at] = [position + 1 for position, _ in found]
        self._times_s[at:at] = [time_s for _, time_s in found]

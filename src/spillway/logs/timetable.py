"""When every position of a generated or replayed stream arrives, in closed form.

The stream is the piecewise linear curve C(t), the tuples that have arrived by time t, given by its
knots (tuples, time). Tuple k arrives when C reaches k + 1. Both directions cost a search among the
knots, whatever the rate, and depend on nothing but the position: planner and workers agree to the
microsecond without talking.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError
from spillway.options import Option
from spillway.ports import ArrivalCurve

Positions = npt.NDArray[np.int64]
Knots = npt.NDArray[np.float64]

CURVE_POINTS = 1024
START = Option(
    "start", "moment", "arrival of the first tuple", without="the first start of the query"
)
_PAUSE_TUPLES = 1e-9


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """Knots of C(t); times in seconds from `start_us`.

    With `period_s` the stream repeats for ever; otherwise it ends with its last knot.
    `strides` interleaves it over that many partitions: tuple k of partition p is tuple
    k * strides + p of the stream.
    """

    start_us: int
    tuples: Knots
    times_s: Knots
    period_s: float | None = None
    strides: int = 1

    def arrival_us(self, positions: Positions, partition: int = 0) -> Positions:
        """When these positions of a partition arrive, in microseconds of the epoch."""
        whole = positions if self.strides == 1 else positions * self.strides + partition
        return self.start_us + np.rint(self._after(whole) * 1e6).astype(np.int64)

    def count(self, now_s: float, partition: int = 0) -> int:
        """How many tuples of a partition have arrived by now."""
        now_us = round(now_s * 1e6)
        found = max(0, (self._count(now_us) - partition + self.strides - 1) // self.strides)
        # Rounding may leave the guess one off; the arrival itself decides.
        while found > 0 and self._arrival(found - 1, partition) > now_us:
            found -= 1
        while self._exists(found, partition) and self._arrival(found, partition) <= now_us:
            found += 1
        return found

    def curve(self, start: int, stop: int, partition: int = 0) -> ArrivalCurve:
        """The arrivals of [start, stop), exact at every point that it has."""
        points = self._points(start, stop, partition)
        times_s = self.arrival_us(np.maximum(points - 1, 0), partition) / 1e6
        return ArrivalCurve(positions=points, times_s=times_s)

    @property
    def _round_tuples(self) -> int:
        return int(self.tuples[-1])

    def _after(self, whole: Positions) -> Knots:
        """Seconds from the start until tuples of the stream arrive."""
        if self.period_s is None:
            return self._within((whole + 1).astype(np.float64))
        rounds, rest = np.divmod(whole, self._round_tuples)
        return rounds * self.period_s + self._within((rest + 1).astype(np.float64))

    def _within(self, reached: Knots) -> Knots:
        """C's inverse. Most spans lie between two knots: one multiplication a tuple."""
        if len(reached) == 0:
            return reached
        left = max(0, int(np.searchsorted(self.tuples, reached.min(), "right")) - 1)
        if left + 1 < len(self.tuples) and reached.max() < self.tuples[left + 1]:
            slope = (self.times_s[left + 1] - self.times_s[left]) / (
                self.tuples[left + 1] - self.tuples[left]
            )
            straight: Knots = slope * (reached - self.tuples[left]) + self.times_s[left]
            return straight
        return np.interp(reached, self.tuples, self.times_s)

    def _count(self, now_us: int) -> int:
        passed_s = (now_us - self.start_us) / 1e6
        if passed_s < 0.0:
            return 0
        rounds = 0
        if self.period_s is not None:
            rounds, passed_s = int(passed_s // self.period_s), passed_s % self.period_s
        within = int(np.interp(passed_s, self.times_s, self.tuples))
        return rounds * self._round_tuples + within

    def _arrival(self, position: int, partition: int) -> int:
        return int(self.arrival_us(np.array([position]), partition)[0])

    def _exists(self, position: int, partition: int) -> bool:
        whole = position * self.strides + partition
        return self.period_s is not None or whole + 1 <= self.tuples[-1]

    def _points(self, start: int, stop: int, partition: int) -> Positions:
        """Whole positions around every knot inside [start, stop], thinned when there are many."""
        first = start * self.strides + partition
        last = stop * self.strides + partition
        rounds = range(1)
        if self.period_s is not None:
            rounds = range(first // self._round_tuples, last // self._round_tuples + 1)
        picked = [self._knots_between(first, last, r * self._round_tuples) for r in rounds]
        knots = np.concatenate(picked)
        local = ((knots - partition - 1) / self.strides + 1.0).astype(np.int64)
        edges = np.array([start, min(start + 1, stop), stop])
        points = np.unique(np.concatenate((edges, local, local + 1)))
        points = points[(points >= start) & (points <= stop)]
        if len(points) > CURVE_POINTS:
            points = points[np.linspace(0, len(points) - 1, CURVE_POINTS).astype(np.int64)]
        return points

    def _knots_between(self, first: int, last: int, offset: int) -> Knots:
        lower = np.searchsorted(self.tuples, first - offset)
        upper = np.searchsorted(self.tuples, last - offset, "right")
        step = max(1, (int(upper) - int(lower)) // CURVE_POINTS)
        return self.tuples[lower:upper:step] + offset


def timetable_of_arrivals(
    start_us: int, arrivals_s: Knots, period_s: float | None, copies: float = 1.0
) -> Timetable:
    """One knot for every known arrival; `copies` tuples of the stream for each of them."""
    tuples = np.arange(len(arrivals_s) + 1, dtype=np.float64) * copies
    times_s = np.concatenate((arrivals_s[:1], arrivals_s))
    return Timetable(start_us=start_us, tuples=tuples, times_s=times_s, period_s=period_s)


def known_start_us(start_us: int | None) -> int:
    """Option `start`; who opens a log for good has pinned it."""
    if start_us is None:
        raise SpillwayError(
            "option 'start' is missing: it is when the stream begins, as epoch seconds or ISO 8601,"
            " or pinned to now"
        )
    return start_us


def timetable_of_rates(
    start_us: int, times_s: Knots, rates_per_s: Knots, strides: int = 1
) -> Timetable:
    """Rates that hold from their time on; the last one for ever (a hundred years)."""
    edges_s = np.append(times_s, times_s[-1] + 3.2e9)
    reached = [0.0]
    for piece in np.diff(edges_s) * rates_per_s:
        # A pause becomes a very steep piece without a whole tuple: knots ascend strictly.
        least = max(reached[-1] + _PAUSE_TUPLES, np.nextafter(reached[-1], np.inf))
        reached.append(max(reached[-1] + piece, least))
    tuples = np.array(reached)
    return Timetable(start_us=start_us, tuples=tuples, times_s=edges_s, strides=strides)

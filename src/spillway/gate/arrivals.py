"""How old the waiting tuples are: the arrival curves of all partitions, pooled."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.model import Backlog, Target
from spillway.ports import ArrivalCurve, Span

Floats = npt.NDArray[np.float64]
_TICK_S = 2e-6  # two ticks of an arrival timestamp


@dataclass(frozen=True)
class Arrivals:
    """Tuples waiting in several partitions, as one piecewise linear count over time.

    `counts[i]` tuples had arrived by `times_s[i]`. Between two knots of its curve a partition's
    tuples are spread evenly.
    """

    curves: Mapping[int, ArrivalCurve]
    times_s: Floats
    counts: Floats
    tuples: int

    @classmethod
    def pool(cls, curves: Sequence[tuple[Span, ArrivalCurve]]) -> "Arrivals":
        known = {span.partition: _begun(curve) for span, curve in curves if span.tuples > 0}
        if not known:
            return cls({}, np.zeros(1), np.zeros(1), 0)
        times_s = np.unique(np.concatenate([curve.times_s for curve in known.values()]))
        counts = np.zeros_like(times_s)
        for curve in known.values():
            counts += _position_at(curve, times_s) - float(curve.positions[0])
        return cls(known, times_s, counts, sum(span.tuples for span, _ in curves))

    def beside(self, others: Sequence[tuple[Span, ArrivalCurve]]) -> "Arrivals":
        """These tuples and others, whose partitions have other numbers."""
        own = [
            (Span(partition=p, start=int(c.positions[0]), stop=int(c.positions[-1])), c)
            for p, c in self.curves.items()
        ]
        return Arrivals.pool([*own, *others])

    def mean_arrival_s(self) -> float:
        """Exact for curves with jumps too: a jump has no width, so it has one time."""
        total, weighted_s = 0.0, 0.0
        for curve in self.curves.values():
            steps = np.diff(curve.positions)
            weighted_s += float(steps @ (curve.times_s[:-1] + curve.times_s[1:]) / 2.0)
            total += float(steps.sum())
        return weighted_s / total if total else 0.0

    def arrival_of_count_s(self, count: float) -> float:
        """When the `count`-th waiting tuple arrived (0 is the oldest)."""
        return float(np.interp(count, self.counts, self.times_s))

    def mean_arrival_of_newest_s(self, tuples: float) -> float:
        """Mean arrival of the newest `tuples` of them."""
        first = self.tuples - min(float(self.tuples), max(1.0, tuples))
        at_s = self.arrival_of_count_s(first)
        later = self.counts > first
        counts = np.concatenate(([first], self.counts[later]))
        times_s = np.concatenate(([at_s], self.times_s[later]))
        steps = np.diff(counts)
        return float(steps @ (times_s[:-1] + times_s[1:]) / 2.0 / steps.sum())

    def within(self, spans: Iterable[Span]) -> "Arrivals":
        """The same tuples, restricted to spans inside these."""
        inside = [s for s in spans if s.tuples > 0]
        return Arrivals.pool([(s, _restrict(self.curves[s.partition], s)) for s in inside])

    def oldest(self, count: int) -> dict[int, int]:
        """Where each partition stands when exactly the `count` oldest tuples are taken.

        Partitions are cut at one moment; tuples of that very moment fill up the count in the
        order of the partitions.
        """
        at_s = self.arrival_of_count_s(count)
        before, after = self._positions_by(at_s - _TICK_S), self._positions_by(at_s + _TICK_S)
        left = count - sum(before[p] - int(c.positions[0]) for p, c in self.curves.items())
        for stops in (after, {p: int(c.positions[-1]) for p, c in self.curves.items()}):
            for partition, stop in stops.items():
                step = max(0, min(left, stop - before[partition]))
                before[partition] += step
                left -= step
        return before

    def _positions_by(self, time_s: float) -> dict[int, int]:
        """For each partition the first position that had not arrived by `time_s`."""
        return {
            partition: int(_position_at(curve, np.array([time_s]))[0])
            for partition, curve in self.curves.items()
        }

    def backlog(self, now_s: float, target: Target) -> Backlog:
        """Ages now. A clock that jumped back must not make a tuple younger than zero."""
        if self.tuples == 0:
            return Backlog()
        mean_s = max(0.0, now_s - self.mean_arrival_s())
        quantile = target.quantile
        statistic_s = mean_s
        if quantile is not None:
            at = self.arrival_of_count_s((1.0 - quantile) * self.tuples)
            statistic_s = max(0.0, now_s - at)
        return Backlog(
            pending_tuples=self.tuples,
            mean_age_s=mean_s,
            statistic_age_s=statistic_s,
            oldest_age_s=max(0.0, now_s - float(self.times_s[0])),
        )


def _begun(curve: ArrivalCurve) -> ArrivalCurve:
    """From the first tuple's arrival on, where the curve knows it. Its first point is when the
    tuple before that arrived: a pause between the two is nobody's age."""
    if curve.positions[1] > curve.positions[0] + 1:
        return curve
    times_s = np.concatenate((curve.times_s[1:2], curve.times_s[1:]))
    return ArrivalCurve(positions=curve.positions, times_s=times_s)


def _restrict(curve: ArrivalCurve, span: Span) -> ArrivalCurve:
    inner = (curve.positions > span.start) & (curve.positions < span.stop)
    edges = np.interp([span.start, span.stop], curve.positions, curve.times_s)
    positions = np.concatenate(([span.start], curve.positions[inner], [span.stop]))
    times_s = np.concatenate((edges[:1], curve.times_s[inner], edges[1:]))
    return ArrivalCurve(positions=positions.astype(np.int64), times_s=times_s)


def _position_at(curve: ArrivalCurve, times_s: Floats) -> Floats:
    found = np.interp(times_s, curve.times_s, curve.positions.astype(np.float64))
    return np.asarray(found, dtype=np.float64)

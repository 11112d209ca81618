"""Logs of one partition whose arrivals are known beforehand."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.ports import ArrivalCurve, Span

_KNOTS = 2_000  # of a curve: between them arrivals are as good as even


class TraceLog:
    """Arrivals that are known beforehand, ascending, in seconds of the host's clock."""

    def __init__(self, times_s: npt.NDArray[np.float64]) -> None:
        self.times_s = times_s

    def columns(self) -> Any:
        import pyarrow as pa

        return pa.schema([("position", pa.int64())])

    def extent(self, now_s: float) -> tuple[Span, ...]:
        stop = int(np.searchsorted(self.times_s, now_s, side="right"))
        return (Span(partition=0, start=0, stop=stop),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        """Everything below position p had arrived when tuple p - 1 did."""
        knots = min(span.tuples, _KNOTS) + 1
        positions = np.unique(np.linspace(span.start, span.stop, knots).astype(np.int64))
        times_s = self.times_s[np.maximum(positions - 1, 0)]
        return ArrivalCurve(positions=positions, times_s=times_s)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[Any]:
        import pyarrow as pa

        where = np.arange(span.start, span.stop) if wanted is None else wanted
        arrival_us = (self.times_s[where] * 1e6).astype(np.int64)
        arrival = pa.array(arrival_us).view(pa.timestamp("us", tz="UTC"))
        yield pa.record_batch({"position": pa.array(where), "_arrival": arrival})

    def commit(self, stops: Mapping[int, int]) -> None:
        pass

    def next_arrival_s(self, position: int) -> float | None:
        """When the first tuple from a position on arrives."""
        return float(self.times_s[position]) if position < self.times_s.size else None


class CurveLog:
    """A count of arrivals over time, linear between its knots: any number of tuples."""

    def __init__(self, times_s: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> None:
        self._times_s, self._counts = times_s, counts

    def extent(self, now_s: float) -> tuple[Span, ...]:
        stop = int(np.interp(now_s, self._times_s, self._counts) + 1e-6)  # whole ones are there
        return (Span(partition=0, start=0, stop=stop),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        inner = (self._counts > span.start) & (self._counts < span.stop)
        knots = np.unique(self._counts[inner].astype(np.int64))
        knots = knots[(knots > span.start) & (knots < span.stop)]
        positions = np.concatenate(([span.start], knots, [span.stop])).astype(np.int64)
        return ArrivalCurve(positions=positions, times_s=self._time_of(positions))

    def next_arrival_s(self, position: int) -> float | None:
        if position + 1 > self._counts[-1]:
            return None
        return float(self._time_of(np.array([position + 1]))[0])

    def _time_of(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = np.interp(counts, self._counts, self._times_s)
        return found

"""A log of one partition whose tuples arrive at given times."""

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

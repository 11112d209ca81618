"""The few protocols that the paths are built from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from spillway.model import Decision, Measurement

# When a law decides: at every micro-batch, once a control period, or whenever the buffer in front
# of the system is handed over (on micro-batches that is a batch, elsewhere a period).
Cadence = Literal["batch", "period", "buffer"]


class Decider(Protocol):
    def decide(self, measurement: Measurement) -> Decision: ...


class LoadManager(Decider, Protocol):
    """When and how much to shed: one control law, its few numbers as state, no clock, no I/O."""

    cadence: ClassVar[Cadence]
    adapts: ClassVar[bool]  # answers to the load; what does not is never overruled


class Plant(Protocol):
    """What is controlled: a gate on any host, or the operator network with its classes."""

    def observe(self) -> Iterable[Measurement]:
        """One measurement for everybody who is to decide now."""
        ...

    def act(self, measurement: Measurement, decision: Decision) -> None: ...


class Journal(Protocol):
    """Every measurement and decision, with its reason."""

    def record(self, measurement: Measurement, decision: Decision) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Positions [start, stop) of one partition of a log."""

    partition: int
    start: int
    stop: int

    @property
    def tuples(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class ArrivalCurve:
    """When the positions of a span arrived: a piecewise linear curve through known points.

    `positions` ascend strictly from span.start to span.stop; `times_s[i]` is when everything below
    `positions[i]` had arrived. Between points the curve is linear: the tuple at position p arrived
    at its value for p + 1. Times ascend, except in a log that keeps the original arrivals of
    another query's rows.
    """

    positions: npt.NDArray[np.int64]
    times_s: npt.NDArray[np.float64]

    def times_of(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Arrival times of tuples of the span."""
        return np.interp(positions + 1, self.positions, self.times_s)


class Log(Protocol):
    """A stream's append-only log of tuples.

    A log is made from plain string options on the driver and again in every worker: making one
    has no side effects and opens nothing. `extent` and `arrivals` are called by the planner,
    `read` by the workers. Positions of a partition ascend without gaps in numbering; a position,
    once readable, never changes its row or its arrival.
    """

    def columns(self) -> Any:
        """The pyarrow schema of the rows, without `_arrival` and `_weight`."""
        ...

    def extent(self, now_s: float) -> tuple[Span, ...]:
        """For every partition: earliest readable position and the next one to be written."""
        ...

    def arrivals(self, span: Span) -> ArrivalCurve:
        """When the tuples of a span arrived (epoch seconds)."""
        ...

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[Any]:
        """Rows of a span as pyarrow record batches: `columns()` and `_arrival` (us, UTC).

        `wanted` lists the positions to deliver, ascending; None means all of them. A log that can
        be addressed by position touches nothing else. Fewer rows come out where a position holds
        no readable row: a malformed record, or an offset that Kafka's compaction removed.
        """
        ...

    def commit(self, stops: Mapping[int, int]) -> None:
        """Everything below these positions (by partition) is done. Most logs ignore it.

        Called by the planner; only for others to look at (Kafka's group lag), never read back.
        """
        ...


@runtime_checkable
class Identified(Protocol):
    """A log whose name may come to mean another log: a topic is deleted and made anew."""

    def identity(self) -> Mapping[str, str]:
        """Options that say which log the name means now; none where that cannot be told.

        A log that was opened with other values of them raises SpillwayError, here and in `extent`.
        """
        ...


@runtime_checkable
class Growing(Protocol):
    """A log to which parts come while it is read: topics that a pattern matches."""

    def grown(self) -> Mapping[str, str]:
        """Options that say what the log is by now; none where it is as it was.

        Asked before every batch is planned; `extent` has no part that this has not told.
        """
        ...


@runtime_checkable
class Starting(Protocol):
    """A log with options of its own for where a first start begins."""

    def starts(self, extent: tuple[Span, ...]) -> Mapping[int, int] | None:
        """The first position of every partition; None where these options say nothing."""
        ...

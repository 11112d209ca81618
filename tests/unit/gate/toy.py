"""A toy log and a toy Spark: the planner's surroundings in virtual time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spillway.clock import ManualClock
from spillway.gate.offsets import SENTINEL, Offset, decode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.planner import Planner
from spillway.ports import ArrivalCurve, Span


@dataclass
class ToyLog:
    """`rate_per_s` tuples a second in each partition, from `start_s` on; may lose its tail."""

    rate_per_s: float = 1000.0
    partitions: int = 1
    start_s: float = 1000.0
    first: int = 0
    limit: int = 2**60
    committed: dict[int, int] = field(default_factory=dict)

    def columns(self) -> Any:
        return pa.schema([("position", pa.int64())])

    def extent(self, now_s: float) -> tuple[Span, ...]:
        stop = min(self.limit, int(max(0.0, now_s - self.start_s) * self.rate_per_s))
        return tuple(
            Span(partition=p, start=min(self.first, max(stop, self.first)), stop=max(stop, 0))
            for p in range(self.partitions)
        )

    def arrivals(self, span: Span) -> ArrivalCurve:
        positions = np.array([span.start, span.stop])
        return ArrivalCurve(positions=positions, times_s=self.start_s + positions / self.rate_per_s)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[Any]:
        where = np.arange(span.start, span.stop) if wanted is None else wanted
        arrival_us = ((self.start_s + where / self.rate_per_s) * 1e6).astype(np.int64)
        yield pa.record_batch(
            {
                "position": pa.array(where),
                "_arrival": pa.array(arrival_us).view(pa.timestamp("us", tz="UTC")),
            }
        )

    def commit(self, stops: Mapping[int, int]) -> None:
        self.committed.update(stops)


@dataclass
class ToySpark:
    """Calls a planner in Spark's order; a batch takes fixed_s + kept_s for every kept tuple."""

    planner: Planner
    clock: ManualClock
    fixed_s: float = 0.2
    kept_s: float = 1e-4
    logged: list[dict[str, Any]] = field(default_factory=list)

    def batch(self) -> Offset | None:
        """One trigger; None when the gate had nothing to do."""
        start = self.logged[-1] if self.logged else dict(SENTINEL)
        end = _over_the_wire(self.planner.latest(start))
        if end == start:
            return None
        self.logged.append(end)
        if len(self.logged) > 1:
            self.planner.completed(start)
        self.planner.shown(start, end)
        batch = decode(end)
        self.clock.advance(self.fixed_s + self.kept_s * batch.kept_tuples())
        return batch

    def batches(self, count: int) -> list[Offset]:
        found = [self.batch() for _ in range(count)]
        return [batch for batch in found if batch is not None]


def _over_the_wire(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


def make(log: ToyLog, clock: ManualClock, **options: str) -> tuple[Planner, dict[str, str]]:
    given = {"source": "toy", **options}
    planner = Planner(
        given,
        GateOptions.parse(given),
        clock=clock,
        elapsed=clock.now_s,
        sleep=clock.advance,
    )
    return planner, given

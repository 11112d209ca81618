"""Cheap surroundings for your own tests: a log, Spark's order of calls, and machines, in memory.

    clock = ManualClock(1000.0)
    log = ToyLog(rate_per_s=2e6)
    with toy_source(log):
        spark = ToySpark.over(log, clock, delay="2s")
        batches = spark.batches(60)

Everything but Spark and the log is real: the planner, the gate in it, offsets and ledgers.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from spillway.clock import ManualClock
from spillway.gate.offsets import SENTINEL, Offset, decode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.load import oracle
from spillway.logs import catalog
from spillway.model import Target
from spillway.ports import ArrivalCurve, Log, Span


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
        import pyarrow as pa

        return pa.schema([("position", pa.int64())])

    def extent(self, now_s: float) -> tuple[Span, ...]:
        stop = min(self.limit, self.count(max(0.0, now_s - self.start_s)))
        return tuple(
            Span(partition=p, start=min(self.first, max(stop, self.first)), stop=max(stop, 0))
            for p in range(self.partitions)
        )

    def arrivals(self, span: Span) -> ArrivalCurve:
        positions = np.array([span.start, span.stop])
        return ArrivalCurve(positions=positions, times_s=self.start_s + positions / self.rate_per_s)

    def count(self, age_s: float) -> int:
        """How many tuples a partition has at that age."""
        return int(age_s * self.rate_per_s)

    def read(self, span: Span, wanted: npt.NDArray[np.int64] | None) -> Iterator[Any]:
        import pyarrow as pa

        where = np.arange(span.start, span.stop) if wanted is None else wanted
        arrival_us = ((self.start_s + where / self.rate_per_s) * 1e6).astype(np.int64)
        arrival = pa.array(arrival_us).view(pa.timestamp("us", tz="UTC"))
        yield pa.record_batch({"position": pa.array(where), "_arrival": arrival})

    def commit(self, stops: Mapping[int, int]) -> None:
        self.committed.update(stops)


@dataclass
class BurstLog(ToyLog):
    """A calm rate, and from `burst_at_s` on `burst_per_s`."""

    burst_per_s: float = 1000.0
    burst_at_s: float = 30.0

    def count(self, age_s: float) -> int:
        calm_s = min(age_s, self.burst_at_s)
        return int(self.rate_per_s * calm_s + self.burst_per_s * (age_s - calm_s))

    def arrivals(self, span: Span) -> ArrivalCurve:
        turn = self.count(self.burst_at_s)
        inner = [turn] if span.start < turn < span.stop else []
        positions = np.array([span.start, *inner, span.stop])
        ages_s = np.array([0.0, self.burst_at_s, self.burst_at_s + 1000.0])
        counts = [self.count(float(age_s)) for age_s in ages_s]
        times_s = self.start_s + np.interp(positions, counts, ages_s)
        return ArrivalCurve(positions=positions, times_s=times_s)


@contextmanager
def toy_source(log: Log) -> Iterator[None]:
    """Whatever log is opened meanwhile is this one."""
    with (
        patch.object(catalog, "open_log", lambda options, schema=None: log),
        patch.object(catalog, "pinned", lambda options, now_s: dict(options)),
    ):
        yield


@dataclass
class ToySpark:
    """Calls a planner in Spark's order; a batch takes fixed_s + kept_s for every kept tuple."""

    planner: Planner
    clock: ManualClock
    fixed_s: float = 0.2
    kept_s: float = 1e-4
    scanned_s: float = 0.0
    logged: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def over(cls, log: Log, clock: ManualClock, **options: str) -> "ToySpark":
        """A gate with these options over a log; `toy_source` must hold while it runs."""
        return cls(planner=toy_planner(clock, **options), clock=clock)

    def batch(self) -> Offset | None:
        """One trigger; None when the gate had nothing to do."""
        batch = self.plan()
        if batch is not None:
            self.run(batch)
        return batch

    def plan(self) -> Offset | None:
        """One trigger up to the point where its batch would run."""
        start = self.logged[-1] if self.logged else dict(SENTINEL)
        end = _over_the_wire(self.planner.latest(start))
        if end == start:
            return None
        self.logged.append(end)
        if len(self.logged) > 1:
            self.planner.completed(start)
        self.planner.shown(start, end)
        return decode(end)

    def run(self, batch: Offset) -> None:
        work_s = self.kept_s * batch.kept_tuples() + self.scanned_s * batch.scanned_tuples
        self.clock.advance(self.fixed_s + work_s)

    def batches(self, count: int) -> list[Offset]:
        found = [self.batch() for _ in range(count)]
        return [batch for batch in found if batch is not None]


def toy_planner(clock: ManualClock, **options: str) -> Planner:
    """A planner whose time is the clock's."""
    given = {"source": "toy", **options}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance)
    return Planner(given, GateOptions.parse(given), around=around)


@dataclass
class ToyMachine:
    """Random prices of a batch, in a JVM that warms up, with noise of the durations.

    `calm_per_s` is what it carries with ease, `burst_per_s` up to twenty times what it can.
    """

    seed: int
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.target = Target(delay_s=float(rng.choice([2.0, 4.0])))
        self.fixed_s = 10 ** rng.uniform(-1.0, -0.4)
        self.kept_s = 1.5e-7 * 10 ** rng.uniform(-0.5, 1.5)
        self.scanned_s = self.kept_s * rng.choice([0.007, 0.03, 0.2])
        self.noise = rng.choice([0.03, 0.08, 0.12])
        self.cold = rng.choice([0.0, 2.0, 6.0])  # times slower, beyond 1
        self.first_s = rng.choice([0.0, 1.5])
        room = 1.0 - self.fixed_s / oracle.uniform_length_s(self.target)
        most = 0.4 * self.kept_s / self.scanned_s  # scanning takes 40 % of the room at most
        self.burst_per_s = min(rng.choice([2.0, 5.0, 10.0, 20.0]), most) * room / self.kept_s
        self.calm_per_s = rng.choice([0.05, 0.2, 0.5]) * room / self.kept_s
        if rng.random() < 0.25:
            self.calm_per_s = self.burst_per_s

    def factor(self, age_s: float) -> float:
        """How much longer than its prices say a batch takes at that age."""
        warm = 1.0 + self.cold * np.exp(-age_s / 7.0)
        return float(warm * np.exp(self.noise * self.rng.standard_normal()))

    def turn_to(self, spark: ToySpark, age_s: float) -> None:
        """What the next batch takes on this machine."""
        factor = self.factor(age_s)
        spark.kept_s, spark.scanned_s = self.kept_s * factor, self.scanned_s * factor
        spark.fixed_s = self.fixed_s * factor + (0.0 if len(spark.logged) > 1 else self.first_s)

    def best_per_s(self) -> float:
        """What the best uniform shedder keeps of the burst."""
        return oracle.uniform_rate_per_s(
            self.burst_per_s, self.target, self.fixed_s, self.kept_s, self.scanned_s
        )


def _over_the_wire(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found

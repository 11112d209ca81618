"""The same run on every host of the gate: what it told its load managers, and what really was."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spillway.classes.control import ClassTerms
from spillway.clock import ManualClock
from spillway.gate.offsets import Offset, decode
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import TraceLog
from spillway.model import Measurement, Order, Report
from spillway.testing import ToySpark, toy_source

FIXED_S, KEPT_S, SCANNED_S = 0.2, 1e-3, 2e-5
DURATION_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A batch as it happened."""

    batch: Offset
    arrived_s: npt.NDArray[np.float64]  # of the tuples that it kept
    planned_s: float
    ended_s: float


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a gate measured, and what happened to it."""

    times_s: npt.NDArray[np.float64]  # of all arrivals
    measured: list[Measurement]
    ran: list[Ran]
    options: GateOptions

    def arrived_by(self, now_s: float) -> int:
        return int(np.searchsorted(self.times_s, now_s, side="right"))


def arrivals(rate_per_s: float, seed: int = 3) -> npt.NDArray[np.float64]:
    """Uneven ones: bursts on top of a steady stream."""
    rng = np.random.default_rng(seed)
    steady = rng.uniform(0.0, DURATION_S, int(rate_per_s * DURATION_S))
    bursts = rng.uniform(20.0, 24.0, int(rate_per_s * 4.0))
    return np.sort(np.concatenate([steady, bursts]))


def on_virtual_host(rate_per_s: float, **options: str) -> Story:
    times_s, given = arrivals(rate_per_s), GateOptions.parse(options)
    query = VirtualQuery(
        name="q",
        log=TraceLog(times_s),
        options=given,
        cost=BatchCost(fixed_s=FIXED_S, kept_s=KEPT_S, scanned_s=SCANNED_S, noise=0.05),
    )
    terms = ClassTerms(priority=1, target=given.target)
    host = VirtualHost([query], {given.class_name: terms}, cores=1, seed=5)
    host.advance(DURATION_S)
    ran = [
        Ran(
            batch=done.batch,
            arrived_s=times_s[done.batch.stretches[0].kept_positions(done.batch.rule)],
            planned_s=done.batch.planned_us / 1e6,
            ended_s=done.ended_s,
        )
        for done in host.lanes["q"].finished
    ]
    measured = [decided.measurement for decided in host.decided]
    return Story(times_s=times_s, measured=measured, ran=ran, options=given)


def on_spark_planner(rate_per_s: float, **options: str) -> Story:
    """The planner as Spark calls it; its driver takes reports now and then, late and in lumps."""
    times_s, measured, ran = arrivals(rate_per_s), [], []
    clock, rng = ManualClock(0.001), np.random.default_rng(6)
    given = GateOptions.parse({"source": "toy", "startingOffsets": "earliest", **options})

    def ask(report: Report) -> Order | None:
        if rng.random() < 0.3:
            return None  # it does not answer: what was to be told waits
        measured.extend(decided.measurement for decided in report.decided)
        return Order(target=given.target)

    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask)
    with toy_source(TraceLog(times_s)):
        spark = ToySpark(Planner({"source": "toy"}, replace(given, gate="q"), around=around), clock)
        while clock.now_s() < DURATION_S:
            batch = spark.plan()
            if batch is None or not batch.seq:
                continue
            planned_s, noise = batch.planned_us / 1e6, float(np.exp(0.05 * rng.standard_normal()))
            spark.fixed_s, spark.kept_s = FIXED_S * noise, KEPT_S * noise
            spark.scanned_s = SCANNED_S * noise
            spark.run(batch)
            arrived_s = times_s[batch.stretches[0].kept_positions(batch.rule)]
            ran.append(
                Ran(
                    batch=decode(spark.logged[-1]),
                    arrived_s=arrived_s,
                    planned_s=planned_s,
                    ended_s=clock.now_s(),
                )
            )
    return Story(times_s=times_s, measured=measured, ran=ran, options=given)


Host = Callable[..., Story]
HOSTS: dict[str, Host] = {"virtual": on_virtual_host, "spark": on_spark_planner}

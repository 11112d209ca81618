"""The whole gate on machines that it has never seen: it starts cold, learns, and meets a burst."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from toy import ToyLog, ToySpark, make

from spillway.clock import ManualClock
from spillway.load import oracle
from spillway.logs import catalog
from spillway.model import Target
from spillway.ports import ArrivalCurve, Span

BURST_S = 30.0  # after the start
END_S = 60.0


@dataclass
class BurstLog(ToyLog):
    """A calm rate, and from 30 s on `burst_per_s`."""

    burst_per_s: float = 1000.0

    def _count(self, age_s: float) -> int:
        calm_s = min(age_s, BURST_S)
        return int(self.rate_per_s * calm_s + self.burst_per_s * (age_s - calm_s))

    def extent(self, now_s: float) -> tuple[Span, ...]:
        return (Span(partition=0, start=0, stop=self._count(max(0.0, now_s - self.start_s))),)

    def arrivals(self, span: Span) -> ArrivalCurve:
        turn = self._count(BURST_S)
        inner = [turn] if span.start < turn < span.stop else []
        positions = np.array([span.start, *inner, span.stop])
        ends_s = np.array([0.0, BURST_S, 1000.0])
        counts = [self._count(float(age_s)) for age_s in ends_s]
        times_s = self.start_s + np.interp(positions, counts, ends_s)
        return ArrivalCurve(positions=positions, times_s=times_s)


@dataclass
class Machine:
    """Random prices of a batch, in a JVM that warms up, with noise of the durations."""

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
        warm = 1.0 + self.cold * np.exp(-age_s / 7.0)
        return float(warm * np.exp(self.noise * self.rng.standard_normal()))


def test_where_the_fixed_price_breaks_the_target_cheap_tuples_are_kept(
    log: ToyLog, clock: ManualClock
) -> None:
    log.rate_per_s = 1e6
    planner, _ = make(log, clock, delay="100ms")
    spark = ToySpark(planner=planner, clock=clock, fixed_s=0.12, kept_s=2e-7)
    kept = [batch.kept_tuples() for batch in spark.batches(60)]
    assert np.mean(kept[-20:]) > 20_000  # which take 4 ms


def late_and_kept(
    machine: Machine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], float]:
    """Mean delay over target in 13 s and in the next 15 s of the burst; kept against the oracle."""
    log = BurstLog(rate_per_s=machine.calm_per_s, burst_per_s=machine.burst_per_s)
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: log)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    planner, _ = make(log, clock, delay=f"{machine.target.delay_s}s", manager="predictive")
    spark = ToySpark(planner=planner, clock=clock)
    began_s = clock.now_s()
    batches: list[tuple[float, float, int]] = []
    while (age_s := clock.now_s() - began_s) < END_S:
        factor = machine.factor(age_s)
        spark.kept_s = machine.kept_s * factor
        spark.fixed_s = machine.fixed_s * factor + (0.0 if batches else machine.first_s)
        batch = spark.batch()
        if batch is None or batch.arrived is None:
            continue
        clock.advance(machine.scanned_s * factor * batch.scanned_tuples)
        now_s = clock.now_s()
        batches.append((now_s - began_s, now_s - batch.arrived.mean_us / 1e6, batch.kept_tuples()))
    ended_s, delay_s, kept = np.array(batches).T
    soon, settled = (ended_s > 32.0) & (ended_s <= 45.0), ended_s > 45.0
    late = [
        np.average(delay_s[w], weights=kept[w]) / machine.target.delay_s for w in (soon, settled)
    ]
    best_per_s = oracle.uniform_rate_per_s(
        machine.burst_per_s, machine.target, machine.fixed_s, machine.kept_s, machine.scanned_s
    )
    return late, kept[settled].sum() / (ended_s[-1] - ended_s[~settled][-1]) / best_per_s


@pytest.mark.parametrize("first_seed", range(0, 60, 10))
def test_the_target_holds_on_machines_never_seen(
    first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first_seed, first_seed + 10):
        late, efficiency = late_and_kept(Machine(seed), ManualClock(1000.0), monkeypatch)
        assert late[0] < 1.3, f"machine {seed}"
        assert late[1] < 1.2, f"machine {seed}"
        assert efficiency > 0.8, f"machine {seed}"

"""On machines that nobody tuned to: below capacity nothing is shed, above it hardly more than by
the oracle."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spillway.load import oracle
from spillway.model import Target
from spillway.testing import BurstLog, ToyLog
from toy_queries import Machine, ToyQuery, warming

BELOW = 0.8  # of what the warm machine carries within the target
SETTLED_S = 45.0  # after the load rose
JUDGED_S = 60.0
# Of what the oracle keeps: it knows the prices, and no batch of its takes longer than another.
MARGIN = 0.15


@dataclass(frozen=True, kw_only=True)
class Case:
    """Prices, a JVM that warms up, and what happens to the query; drawn by a seed."""

    target: Target
    fixed_s: float
    kept_s: float
    scanned_s: float
    noise: float
    times_slower: float
    warm_s: float
    gates: int
    load: float  # of what the warm machine carries
    event: str
    event_s: float  # how long it lasts
    seed: int

    @classmethod
    def drawn(cls, seed: int) -> "Case":
        rng = np.random.default_rng(seed)
        target = Target(delay_s=float(rng.choice([1.0, 2.0, 4.0])))
        return cls(
            target=target,
            fixed_s=float(rng.uniform(0.1, 0.5)) * oracle.uniform_length_s(target),
            kept_s=float(1.5e-7 * 10 ** rng.uniform(-0.5, 2.5)),
            scanned_s=0.0,
            noise=float(rng.uniform(0.03, 0.15)),
            times_slower=float(rng.choice([1.0, rng.uniform(1.0, 10.0), 10.0])),
            warm_s=float(rng.uniform(5.0, 60.0)),
            gates=int(rng.choice([1, 1, 2, 3])),
            load=float(BELOW * 10 ** rng.uniform(-2.0, 0.0)),
            event=str(rng.choice(["none", "stop", "kill", "pause"])),
            event_s=float(rng.uniform(2.0, 40.0)),
            seed=seed,
        ).scanning(float(rng.choice([0.007, 0.03, 0.2])))

    def scanning(self, share: float) -> "Case":
        return replace(self, scanned_s=share * self.kept_s)

    @property
    def carries_per_s(self) -> float:
        """The most of which nothing has to be shed: o + (c + s) r D = D."""
        busy = 1.0 - self.fixed_s / oracle.uniform_length_s(self.target)
        return busy / (self.kept_s + self.scanned_s)

    def query(self, folder: Path, burst_at_s: float, overload: float) -> ToyQuery:
        """The load, and from `burst_at_s` on `overload` times what the machine carries."""
        share = self.carries_per_s / self.gates
        logs: dict[str, ToyLog] = {
            f"s{number}": BurstLog(
                rate_per_s=self.load * share,
                burst_per_s=overload * share,
                burst_at_s=burst_at_s,
            )
            for number in range(self.gates)
        }
        machine = Machine(
            fixed_s=self.fixed_s,
            kept_s=self.kept_s,
            scanned_s=self.scanned_s,
            noise=self.noise,
            cold=warming(self.times_slower, self.warm_s),
            seed=self.seed,
        )
        options = {"delay": f"{self.target.delay_s}s"}
        return ToyQuery(machine=machine, logs=logs, folder=folder, options=options)

    def happen(self, query: ToyQuery) -> None:
        if self.event == "stop":
            query.stop(for_s=self.event_s)
        elif self.event == "kill":
            query.kill(for_s=self.event_s)
        elif self.event == "pause":
            query.pause(self.event_s)


def half_of(seeds: range) -> list[Any]:
    """The other half takes its time with the slow tests."""
    return [*seeds[::2], *(pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[1::2])]


@pytest.mark.parametrize("seed", half_of(range(28)))
def test_below_capacity_nothing_is_shed(seed: int, tmp_path: Path) -> None:
    case = Case.drawn(seed)
    query = case.query(tmp_path, burst_at_s=10_000.0, overload=case.load)
    query.run(40.0)
    assert query.shed == 0, f"before anything happened: {case}"
    case.happen(query)
    query.run(query.now_s + case.warm_s + 20.0)
    assert query.shed == 0, f"after {case.event}: {case}"
    waited_s = query.waits_s
    query.run(query.now_s + 30.0)
    assert query.shed == 0, f"while it caught up: {case}"
    # At 0.8 of the load the rest of the machine works off a quarter of a second in each.
    assert query.waits_s < max(4.0 * case.target.delay_s, waited_s - 4.0), f"not caught up: {case}"


@pytest.mark.parametrize("seed", half_of(range(28, 40)))
def test_above_capacity_hardly_more_is_shed_than_by_the_oracle(seed: int, tmp_path: Path) -> None:
    case = replace(Case.drawn(seed), load=0.3)
    overload = float(np.random.default_rng([seed, 2]).uniform(1.5, 5.0))
    burst_at_s = 60.0 + case.warm_s
    query = case.query(tmp_path, burst_at_s=burst_at_s, overload=overload)
    settled_s = burst_at_s + SETTLED_S
    query.run(burst_at_s)
    assert query.shed == 0, f"below capacity: {case}"
    query.run(settled_s + JUDGED_S)
    judged = [batch for batch in query.done if batch.ended_s > settled_s]
    before_s = max(batch.ended_s for batch in query.done if batch.ended_s <= settled_s)
    kept = sum(batch.kept for batch in judged)
    best = oracle.uniform_rate_per_s(
        overload * case.carries_per_s, case.target, case.fixed_s, case.kept_s, case.scanned_s
    ) * (judged[-1].ended_s - before_s)
    assert kept > (1.0 - MARGIN) * best, f"overload of {overload:.2g}: {case}"
    delay_s = np.average([b.delay_s for b in judged], weights=[b.kept for b in judged])
    assert delay_s < 1.1 * case.target.delay_s, f"overload of {overload:.2g}: {case}"

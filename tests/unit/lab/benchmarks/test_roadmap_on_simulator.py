"""Roadmaps of the simulator's networks, and what the engine makes of them."""

import numpy as np
import pytest

from spillway.gate.roadmap import load_of
from spillway_lab.benchmarks.registry import BenchSetup
from spillway_lab.benchmarks.roadmap import UTILISATION, inflow_of, sim_case
from spillway_lab.engine.network import Network, Operator, load_coefficient


def random_tree(rng: np.random.Generator) -> Network:
    """Operators that each read one of those before them."""
    operators = [Operator(name="0", cost_s=float(rng.random()))]
    for i in range(1, int(rng.integers(2, 15))):
        operators.append(
            Operator(
                name=str(i),
                cost_s=float(rng.random()),
                selectivity=float(rng.uniform(0.1, 2.0)),
                inputs=(str(rng.integers(i)),),
            )
        )
    return Network(operators=tuple(operators))


@pytest.mark.parametrize("seed", range(20))
def test_load_coefficients_are_those_of_the_engine(seed: int) -> None:
    network = random_tree(np.random.default_rng(seed))
    inflow = inflow_of(network, 3.0, {})
    assert load_of([inflow]) == pytest.approx(3.0 * load_coefficient(network, "input"))


@pytest.mark.parametrize("overload", [1.5, 3.0])
def test_at_equal_load_the_roadmap_gives_more_than_uniform_dropping(overload: float) -> None:
    uniform, best = sim_case(overload, BenchSetup(seed=5, quick=True))
    for row in (uniform, best):
        assert row["load"] == pytest.approx(UTILISATION, rel=0.05)
        assert row["worth_per_s"] == pytest.approx(row["predicted_worth_per_s"], rel=0.1)
        assert row["mean_delay_s"] < 1.0
    assert best["worth_per_s"] > 1.2 * uniform["worth_per_s"]

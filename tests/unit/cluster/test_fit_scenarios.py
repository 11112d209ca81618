"""Tables filled by linear programmes, and mixtures of their rows."""

import numpy as np
import pytest
from scipy.optimize import linprog

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import shed
from spillway.cluster.fit.mixture import Mixture
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.scenarios import _of_child, growing_tables, scenario_tables
from spillway.cluster.fit.spread import TableSize
from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Port, Topology, exact
from spillway.errors import SpillwayError
from spillway_lab.workloads.random_topology import Shape, random_topology


def moved(rates: dict[Port, float], rng: np.random.Generator) -> dict[Port, float]:
    factors = np.exp(rng.uniform(np.log(0.6), np.log(1.65), size=len(rates)))
    return {port: rate * f for (port, rate), f in zip(rates.items(), factors, strict=True)}


def qualities(seeds: range, inputs: int = 2, parents: int = 1) -> list[float]:
    """Score over the optimum at moved rates; no node is ever overloaded."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        nodes = int(rng.integers(2, 40))
        shape = Shape(nodes=nodes, max_inputs=inputs, max_parents=parents)
        topology, rates = random_topology(shape, rng)
        tables = scenario_tables(topology, rates, np.random.default_rng(seed + 1))
        for _ in range(2):
            now = moved(rates, rng)
            outcome = shed(topology, tables, now)
            assert max(outcome.loads.values()) <= 1.0 + 1e-6
            found.append(outcome.score / optimum(topology, now).score)
    return found


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_on_trees_mixtures_are_near_the_optimum_at_rates_that_moved(inputs: int) -> None:
    ratios = qualities(range(500, 506), inputs=inputs)
    assert np.mean(ratios) >= 0.98
    assert min(ratios) >= 0.95


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_with_several_parents_they_stay_close(inputs: int) -> None:
    ratios = qualities(range(700, 706), inputs=inputs, parents=3)
    assert np.mean(ratios) >= 0.98
    assert min(ratios) >= 0.95


def test_nodes_that_share_one_behind_them_follow_one_answer_at_the_expected_rates() -> None:
    for seed in range(40, 46):
        shape = Shape(nodes=25, max_inputs=2, max_parents=3)
        topology, rates = random_topology(shape, np.random.default_rng(seed))
        tables = scenario_tables(topology, rates, np.random.default_rng(1))
        found = shed(topology, tables, rates).score
        assert found >= 0.99 * optimum(topology, rates).score


def test_at_the_expected_rates_a_tree_gets_the_optimum() -> None:
    topology, rates = random_topology(Shape(nodes=30), np.random.default_rng(8))
    tables = scenario_tables(topology, rates, np.random.default_rng(1), count=4)
    assert shed(topology, tables, rates).score == pytest.approx(optimum(topology, rates).score)


def test_they_beat_the_papers_tables_of_more_rows() -> None:
    topology, rates = random_topology(Shape(nodes=40, max_inputs=3), np.random.default_rng(4))
    ours = scenario_tables(topology, rates, np.random.default_rng(1))
    papers = build_tables(topology, TableSize(rows=64), peaks=rates)
    now = moved(rates, np.random.default_rng(2))
    assert shed(topology, ours, now).score > shed(topology, papers, now).score


def test_rows_come_one_by_one_and_each_helps_on_average() -> None:
    topology, rates = random_topology(Shape(nodes=20, max_inputs=2), np.random.default_rng(3))
    rng = np.random.default_rng(5)
    loads = [moved(rates, rng) for _ in range(6)]
    scores = [
        sum(shed(topology, tables, now).score for now in loads)
        for tables in growing_tables(topology, rates, np.random.default_rng(1), count=12)
    ]
    assert len(scores) == 12
    assert scores[-1] > scores[0]


def test_nothing_is_shed_where_nothing_is_overloaded() -> None:
    topology, rates = random_topology(Shape(nodes=25), np.random.default_rng(6))
    tables = scenario_tables(topology, rates, np.random.default_rng(1), count=6)
    few = {port: rate * 0.05 for port, rate in rates.items()}
    assert not any(plan.sheds for plan in shed(topology, tables, few).plans.values())


def test_a_node_refuses_rates_of_another_node() -> None:
    topology, rates = random_topology(Shape(nodes=3), np.random.default_rng(6))
    table = scenario_tables(topology, rates, np.random.default_rng(1), count=1)["n0"]
    with pytest.raises(SpillwayError, match="got 9 rates"):
        table.look_up((1.0,) * 9)


@pytest.mark.parametrize("inputs", [1, 2, 3, 5])
def test_a_mixture_is_what_a_linear_programme_says(inputs: int) -> None:
    rng = np.random.default_rng(inputs)
    rates = rng.uniform(0.0, 10.0, size=(inputs, 24))
    scores = rates.sum(axis=0) * rng.uniform(0.5, 1.5, size=24)
    mixture = Mixture(rates, scores, np.concatenate((rates, scores[None])))
    for _ in range(200):
        offered = rng.uniform(0.0, 12.0, size=inputs)
        *taken, score = mixture.of(offered.tolist())
        exact = linprog(
            -scores, A_ub=np.vstack([rates, np.ones(24)]), b_ub=[*offered, 1.0], method="highs"
        )
        assert score == pytest.approx(float(scores @ exact.x), abs=1e-6)
        assert (np.array(taken) <= offered + 1e-6).all()


def test_a_topology_of_one_output_needs_one_row() -> None:
    topology, rates = random_topology(Shape(nodes=1, max_inputs=1), np.random.default_rng(0))
    tables = scenario_tables(Topology(topology.nodes), rates, np.random.default_rng(0), count=1)
    assert shed(topology, tables, rates).score == pytest.approx(optimum(topology, rates).score)


@pytest.mark.parametrize(("others", "expected"), [(0.0, 0.2), (1.0, 0.4), (1.6, 1.0)])
def test_what_others_send_to_a_child_leaves_less_of_it(others: float, expected: float) -> None:
    """0.4 x + 0.5 y <= 1 with y from elsewhere, x half of what comes in here."""
    inputs = (Input(name="mine"), Input(name="theirs"))
    paths = tuple(Path(source=i.name, cost=exact("1"), to=Output(query=i.name)) for i in inputs)
    child = Node(name="c", inputs=inputs, paths=paths)
    path = Path(
        source="in", cost=exact("0"), selectivity=exact("0.5"), to=Arc(node="c", input="mine")
    )
    parent = Node(name="p", inputs=(Input(name="in"),), paths=(path,))
    offered = {("c", "mine"): 9.0, ("c", "theirs"): others}
    limits = np.array([[0.4, 0.5]])
    assert _of_child(child, parent, limits, offered) == pytest.approx(np.array([[expected]]))
    full = _of_child(child, parent, limits, {**offered, ("c", "theirs"): 2.5})
    assert full.min() > 1e3, "nothing is left"

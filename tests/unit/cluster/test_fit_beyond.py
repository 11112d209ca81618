"""The paper's open challenges: several parents, fairness, bandwidth."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import shed, shed_nothing
from spillway.cluster.fit.fairness import jain_index, max_min_fractions
from spillway.cluster.fit.links import Link, with_links
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.shares import negotiate, unshared
from spillway.cluster.fit.spread import MaxError, TableSize
from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Port, Topology, exact
from spillway.errors import SpillwayError
from spillway_lab.workloads.random_topology import Shape, random_topology


def two_parents(
    weights: tuple[str, str] = ("1", "1"),
) -> tuple[Topology, dict[Port, float]]:
    """A and B each send one stream to C, which has room for one of them."""
    parents = tuple(
        Node(
            name=name,
            inputs=(Input(name="in"),),
            paths=(Path(source="in", cost=exact("0.1"), to=Arc(node="C", input=name)),),
        )
        for name in "AB"
    )
    paths = tuple(
        Path(source=n, cost=exact(1), to=Output(query=n, weight=exact(w)))
        for n, w in zip("AB", weights, strict=True)
    )
    child = Node(name="C", inputs=(Input(name="A"), Input(name="B")), paths=paths)
    return Topology((*parents, child)), {("A", "in"): 1.0, ("B", "in"): 1.0}


def test_every_parent_gets_a_copy_of_a_common_child() -> None:
    topology, _ = two_parents()
    split = unshared(topology, {"C<A": 0.25, "C<B": 0.75})
    assert split.copies["C"] == ("C<A", "C<B")
    assert split.forest.by_name["C<B"].capacity == Fraction(3, 4)
    assert split.forest.is_forest
    assert not topology.is_forest


def test_tables_alone_refuse_several_parents() -> None:
    with pytest.raises(SpillwayError, match=r"'C' has several parents \(A, B\)"):
        build_tables(two_parents()[0], TableSize(rows=16))


def test_prices_give_a_common_child_to_the_parent_that_makes_more_of_it() -> None:
    topology, rates = two_parents(weights=("1", "3"))
    found = negotiate(topology, rates, TableSize(rows=64))
    assert found.proportional_score == pytest.approx(2.0, rel=0.05)
    assert found.outcome.score == pytest.approx(optimum(topology, rates).score, rel=0.05)
    assert sum(found.shares[copy] for copy in ("C<A", "C<B")) == pytest.approx(1.0)


def test_no_copy_of_a_common_node_takes_more_than_its_share() -> None:
    topology, rates = random_topology(Shape(nodes=25, max_parents=3), np.random.default_rng(3))
    found = negotiate(topology, rates, TableSize(rows=32), rounds=3)
    assert found.outcome.score >= found.proportional_score
    for name, copies in found.unshared.copies.items():
        forest = found.unshared.forest.by_name
        busy = sum(found.outcome.loads[c] * float(forest[c].capacity) for c in copies)
        assert busy <= float(topology.by_name[name].capacity) * (1 + 1e-6)


def test_jains_index_is_one_for_equals_and_one_nth_for_a_single_winner() -> None:
    assert jain_index([0.3, 0.3, 0.3]) == pytest.approx(1.0)
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


@pytest.mark.parametrize("seed", range(5))
def test_max_min_raises_the_lowest_fraction_as_far_as_a_linear_programme_can(
    seed: int,
) -> None:
    topology, rates = random_topology(Shape(nodes=12), np.random.default_rng(seed))
    loads = shed_nothing(topology, rates).loads
    # all queries at one fraction t: maximise t subject to t x load <= 1 at every node
    answer = linprog([-1.0], A_ub=[[x] for x in loads.values()], b_ub=[1.0] * len(loads))
    assert answer.x is not None
    lowest = min(1.0, answer.x[0])
    assert min(max_min_fractions(topology, rates).values()) == pytest.approx(lowest)


def test_max_min_leaves_no_capacity_that_a_query_could_use() -> None:
    topology, rates = random_topology(Shape(nodes=12), np.random.default_rng(9))
    fractions = max_min_fractions(topology, rates)
    assert min(fractions.values()) < 1.0
    assert max(fractions.values()) > min(fractions.values())
    assert len(fractions) == len(topology.outputs)


def test_a_full_node_stops_only_its_own_queries() -> None:
    slow = Node(
        name="slow",
        inputs=(Input(name="in"),),
        paths=(Path(source="in", cost=exact(4), to=Output(query="slow")),),
    )
    root = Node(
        name="root",
        inputs=(Input(name="in"),),
        paths=(
            Path(source="in", cost=exact("0.1"), to=Arc(node="slow", input="in")),
            Path(source="in", cost=exact("0.1"), to=Output(query="fast")),
        ),
    )
    fractions = max_min_fractions(Topology((root, slow)), {("root", "in"): 1.0})
    assert fractions == pytest.approx({"slow": 0.25, "fast": 1.0})


def test_a_link_limits_what_a_parent_sends() -> None:
    child = Node(
        name="c",
        inputs=(Input(name="in"),),
        paths=(Path(source="in", cost=exact("0.1"), to=Output(query="q")),),
    )
    root = Node(
        name="r",
        inputs=(Input(name="in"),),
        paths=(Path(source="in", cost=exact("0.1"), to=Arc(node="c", input="in")),),
    )
    link = Link(sender="r", receivers=("c",), bytes_per_s=exact(200), bytes_per_tuple=exact(100))
    topology = with_links(Topology((root, child)), [link])
    tables = build_tables(topology, MaxError(score=exact("0.01")))
    found = shed(topology, tables, {("r", "in"): 5.0})
    assert found.delivered["q"] == pytest.approx(2.0, abs=0.01)
    assert found.plans["r"].sheds  # at the earliest node, not on the wire
    assert not found.plans[link.name].sheds


def test_a_link_without_traffic_is_refused() -> None:
    topology, _ = two_parents()
    link = Link(sender="A", receivers=("B",), bytes_per_s=exact(1), bytes_per_tuple=exact(1))
    with pytest.raises(SpillwayError, match="carries nothing"):
        with_links(topology, [link])

"""A topology from what gates have measured."""

from dataclasses import replace

import pytest

from spillway.cluster.fit.decide import shed
from spillway.cluster.fit.measured import (
    MEMORY_S,
    Averages,
    Network,
    QueryCost,
    moved,
    rates_of,
    topology_of,
)
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.topology import Arc, Output
from spillway.errors import SpillwayError


def cost(query: str, cost_s: float, *, offered: float = 100.0, **more: float) -> QueryCost:
    given = {"fixed_cores": 0.0, "selectivity": 1.0, **more}
    return QueryCost(query=query, cost_s=cost_s, offered_per_s=offered, **given)  # type: ignore[arg-type]


FIGURE_1 = {
    "a1": cost("a1", 0.004),
    "a2": cost("a2", 0.008),
    "b1": cost("b1", 0.012, offered=7.0),
    "b2": cost("b2", 0.004, offered=7.0),
}
NETWORK = Network(
    node_of={"a1": "A", "a2": "A", "b1": "B", "b2": "B"},
    slots={"A": 1.0, "B": 1.0},
    readers={"a1": ("b1",), "a2": ("b2",)},
)


def test_figure_1_comes_out_of_its_measured_costs() -> None:
    topology = topology_of(NETWORK, FIGURE_1)
    rates = rates_of(topology, FIGURE_1)
    assert rates == {("A", "a1"): 100.0, ("A", "a2"): 100.0}
    best = optimum(topology, rates)
    assert best.delivered == pytest.approx({"b1": 50.0, "b2": 100.0})
    assert NETWORK.spans_nodes


def test_the_fixed_price_of_batches_is_no_time_for_tuples() -> None:
    dear = {name: replace(found, fixed_cores=0.05) for name, found in FIGURE_1.items()}
    [a, _] = topology_of(NETWORK, dear).nodes
    assert float(a.capacity) == pytest.approx(0.9)


def test_a_query_with_several_readers_sends_to_all_of_them() -> None:
    network = replace(NETWORK, readers={"a1": ("b1", "b2")})
    [a, _] = topology_of(network, FIGURE_1).nodes
    assert [p.to for p in a.paths if p.source == "a1"] == [
        Arc(node="B", input="b1"),
        Arc(node="B", input="b2"),
    ]


def test_a_query_of_several_streams_is_time_that_is_gone() -> None:
    joins = {**FIGURE_1, "b2": replace(FIGURE_1["b2"], modelled=False, offered_per_s=50.0)}
    topology = topology_of(NETWORK, joins)
    assert float(topology.by_name["B"].capacity) == pytest.approx(0.8)
    [delivers] = [p.to for p in topology.by_name["A"].paths if p.source == "a2"]
    assert isinstance(delivers, Output)


def test_the_higher_class_is_worth_more_than_any_of_the_lower() -> None:
    ranked = {**FIGURE_1, "b2": replace(FIGURE_1["b2"], priority=7)}
    topology = topology_of(NETWORK, ranked)
    worth = {p.to.query: p.to.priority for p in topology.by_name["B"].paths}  # type: ignore[union-attr]
    assert worth == {"b1": 0, "b2": 1}


def test_nodes_that_feed_each_other_have_no_tables() -> None:
    network = replace(NETWORK, readers={"a1": ("b1",), "b1": ("a2",)})
    with pytest.raises(SpillwayError, match="cycle"):
        topology_of(network, FIGURE_1)


def test_costs_are_averaged_and_rates_are_not() -> None:
    averages = Averages()
    averages.read([cost("a1", 0.004)], 0.0)
    averages.read([cost("a1", 0.008, offered=900.0)], MEMORY_S / 4.0)
    assert averages.of["a1"].cost_s == pytest.approx(0.005)
    assert averages.of["a1"].offered_per_s == 900.0
    averages.keep_only([])
    assert averages.of == {}


def test_how_far_a_change_has_gone() -> None:
    dearer = {**FIGURE_1, "a1": cost("a1", 0.005)}
    assert moved(FIGURE_1, dearer) == pytest.approx(0.25)
    assert moved(FIGURE_1, {"a1": FIGURE_1["a1"]}) == float("inf")
    sends_less = {**FIGURE_1, "a1": cost("a1", 0.004, selectivity=0.5)}
    assert moved(FIGURE_1, sends_less) == pytest.approx(0.5)
    assert moved(FIGURE_1, dict(FIGURE_1)) == 0.0


def test_a_node_without_time_left_takes_nothing_and_breaks_nothing() -> None:
    from numpy.random import default_rng

    from spillway.cluster.fit.scenarios import scenario_tables

    full = {name: replace(found, fixed_cores=0.6) for name, found in FIGURE_1.items()}
    topology = topology_of(NETWORK, full)
    tables = scenario_tables(topology, rates_of(topology, full), default_rng(1), 4)
    outcome = shed(topology, tables, rates_of(topology, full))
    assert sum(outcome.delivered.values()) < 0.1

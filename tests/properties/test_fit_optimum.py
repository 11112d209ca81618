"""On every random tree: within the stated error of the optimum, and nobody overloaded."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import shed, shed_nothing
from spillway.cluster.fit.links import Link, with_links
from spillway.cluster.fit.messages import TableUpdate, apply_update, full_update
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.shares import negotiate
from spillway.cluster.fit.spread import MaxError, TableSize
from spillway.cluster.fit.table import FeasibleInputTable
from spillway.cluster.fit.topology import OUTSIDE, Arc, Node, Output, Path, Port, Topology, exact
from spillway_lab.workloads.random_topology import Shape, random_topology

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.builds(
    Shape,
    nodes=st.integers(1, 12),
    max_inputs=st.integers(1, 3),
    max_children=st.integers(1, 4),
    split_chance=st.sampled_from([0.0, 0.5, 1.0]),
    weights=st.sampled_from([(1,), (1, 2, 5)]),
)


def stated(topology: Topology, tables: Mapping[str, FeasibleInputTable]) -> float:
    return sum(t.error for name, t in tables.items() if topology.parents[name] == (OUTSIDE,))


@given(shape=SHAPES, seed=SEEDS, rows=st.sampled_from([16, 64]), factor=st.floats(0.1, 1.0))
@settings(max_examples=60, deadline=None)
def test_sized_tables_stay_within_their_stated_error(
    shape: Shape, seed: int, rows: int, factor: float
) -> None:
    topology, peaks = random_topology(shape, np.random.default_rng(seed))
    tables = build_tables(topology, TableSize(rows=rows), peaks=peaks)
    rates = {port: rate * factor for port, rate in peaks.items()}
    best = optimum(topology, rates).score
    found = shed(topology, tables, rates)
    assert best - found.score <= stated(topology, tables) + 1e-6 * best
    assert found.score <= best * (1 + 1e-6)
    assert max(found.loads.values()) <= 1 + 1e-6


@given(seed=SEEDS, nodes=st.integers(1, 6), inputs=st.integers(1, 2))
@settings(max_examples=40, deadline=None)
def test_leaf_errors_add_up_and_hold(seed: int, nodes: int, inputs: int) -> None:
    shape = Shape(nodes=nodes, max_inputs=inputs, max_children=2)
    topology, rates = random_topology(shape, np.random.default_rng(seed))
    best = optimum(topology, rates).score
    error = exact(f"{best / 10:.3g}")
    tables = build_tables(topology, MaxError(score=error), peaks=rates)
    ends = sum(any(isinstance(p.to, Output) for p in n.paths) for n in topology.nodes)
    found = shed(topology, tables, rates)
    assert best - found.score <= stated(topology, tables) + 1e-6 * best
    if inputs == 1:  # nothing is thinned
        assert stated(topology, tables) <= ends * float(error) * (1 + 1e-9)


@given(seed=SEEDS, nodes=st.integers(2, 10))
@settings(max_examples=15, deadline=None)
def test_any_acyclic_topology_is_safe_and_at_most_optimal(seed: int, nodes: int) -> None:
    shape = Shape(nodes=nodes, max_parents=3)
    topology, rates = random_topology(shape, np.random.default_rng(seed))
    found = negotiate(topology, rates, TableSize(rows=16), rounds=2)
    assert max(found.outcome.loads.values()) <= 1 + 1e-6
    assert found.outcome.score <= optimum(topology, rates).score * (1 + 1e-6)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_what_a_parent_receives_is_what_the_child_published(seed: int) -> None:
    topology, _ = random_topology(Shape(nodes=3, max_inputs=3), np.random.default_rng(seed))
    for table in build_tables(topology, TableSize(rows=24)).values():
        update = TableUpdate.decode(full_update(table, 1).encode())
        assert apply_update(table.inputs, None, 0, update).same_as(table)


@given(seed=SEEDS, nodes=st.integers(2, 10), share=st.floats(0.3, 1.5))
@settings(max_examples=20, deadline=None)
def test_narrow_links_keep_the_promise_too(seed: int, nodes: int, share: float) -> None:
    plain, rates = random_topology(Shape(nodes=nodes), np.random.default_rng(seed))
    offered = shed_nothing(plain, rates).offered
    links = [
        Link(
            sender=node.name,
            receivers=node.children,
            bytes_per_s=exact(f"{100 * share * sum(_sent(node, offered)):.4g}"),
            bytes_per_tuple=exact(100),
        )
        for node in plain.nodes
        if node.children
    ]
    topology = with_links(plain, links)
    tables = build_tables(topology, TableSize(rows=64), peaks=rates)
    best = optimum(topology, rates).score
    found = shed(topology, tables, rates)
    assert best <= optimum(plain, rates).score * (1 + 1e-6)
    assert best - found.score <= stated(topology, tables) + 1e-6 * best
    assert max(found.loads.values()) <= 1 + 1e-6


def _sent(node: Node, offered: Mapping[Port, float]) -> Iterator[float]:
    for path in node.paths:
        if isinstance(path.to, Arc):
            yield offered[path.to.node, path.to.input]


@given(seed=SEEDS, nodes=st.integers(1, 8))
@settings(max_examples=20, deadline=None)
def test_priorities_keep_the_promise_and_serve_the_high_ones_first(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    plain, rates = random_topology(Shape(nodes=nodes), rng)
    topology = Topology(
        tuple(
            replace(node, paths=tuple(_ranked(path, int(rng.integers(2))) for path in node.paths))
            for node in plain.nodes
        )
    )
    tables = build_tables(topology, TableSize(rows=64), peaks=rates)
    best = optimum(topology, rates)
    found = shed(topology, tables, rates)
    lost = stated(topology, tables)
    assert best.score - found.score <= lost + 1e-6 * best.score
    high = {output.query for output in topology.outputs if output.priority}
    low = sum(rate for query, rate in found.delivered.items() if query not in high)
    served = sum(found.delivered[query] for query in high)
    assert served >= sum(best.delivered[query] for query in high) - (lost + low) / 1000 - 1e-3


def _ranked(path: Path, priority: int) -> Path:
    if isinstance(path.to, Output):
        return replace(path, to=replace(path.to, priority=priority))
    return path

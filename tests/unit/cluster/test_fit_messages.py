"""Only what changed travels."""

from dataclasses import replace

import numpy as np
import pytest

from spillway.cluster.fit.build import build_table, build_tables
from spillway.cluster.fit.messages import (
    TableUpdate,
    apply_update,
    full_update,
    refresh,
    update_between,
)
from spillway.cluster.fit.spread import MaxError, TableSize
from spillway.cluster.fit.topology import Port, Topology, exact
from spillway.errors import SpillwayError
from spillway_lab.workloads.random_topology import Shape, random_topology

Tree = tuple[Topology, dict[Port, float]]


@pytest.fixture
def tree() -> Tree:
    return random_topology(Shape(nodes=30), np.random.default_rng(4))


def dearer(topology: Topology, name: str, factor: str) -> Topology:
    node = topology.by_name[name]
    paths = tuple(replace(p, cost=p.cost * exact(factor)) for p in node.paths)
    changed = replace(node, paths=paths)
    return Topology(tuple(changed if n is node else n for n in topology.nodes))


def a_leaf(topology: Topology) -> str:
    return next(n.name for n in reversed(topology.order) if not n.children)


def test_a_full_table_survives_the_wire(tree: Tree) -> None:
    for table in build_tables(tree[0], TableSize(rows=32)).values():
        update = TableUpdate.decode(full_update(table, 1).encode())
        assert apply_update(table.inputs, None, 0, update).same_as(table)


def test_old_table_and_update_give_the_new_table(tree: Tree) -> None:
    topology, _ = tree
    size = MaxError(score=exact("2"))
    name = a_leaf(topology)
    old = build_table(topology.by_name[name], {}, size)
    new = build_table(dearer(topology, name, "1.05").by_name[name], {}, size)
    update = update_between(old, new, version=2)
    received = apply_update(old.inputs, old, 1, TableUpdate.decode(update.encode()))
    assert received.same_as(new)
    assert not received.same_as(old)


def test_with_a_maximum_error_a_dearer_path_moves_only_the_edge_of_the_table() -> None:
    shape = Shape(nodes=1, max_inputs=1, split_chance=0.0)
    topology, _ = random_topology(shape, np.random.default_rng(1))
    size = MaxError(score=exact("0.5"))
    old = build_tables(topology, size)["n0"]
    new = build_tables(dearer(topology, "n0", "1.05"), size)["n0"]
    update = update_between(old, new, version=2)
    assert update.base == 1
    assert len(update.encode()) < len(full_update(new, 2).encode()) / 2


def test_a_missed_version_is_refused(tree: Tree) -> None:
    table = build_tables(tree[0], TableSize(rows=8))["n0"]
    update = replace(full_update(table, 5), base=4)
    with pytest.raises(SpillwayError, match="ask the child for its table in full"):
        apply_update(table.inputs, table, 3, update)


def test_nothing_travels_when_nothing_changed(tree: Tree) -> None:
    topology, rates = tree
    tables = build_tables(topology, TableSize(rows=32), peaks=rates)
    found = refresh(topology, tables, [a_leaf(topology)], TableSize(rows=32), peaks=rates)
    assert found.message_bytes == {}
    assert found.rebuilt == (a_leaf(topology),)


def test_a_refresh_gives_the_tables_of_a_full_build_from_the_changed_branch_alone(
    tree: Tree,
) -> None:
    topology, rates = tree
    size = TableSize(rows=32)
    tables = build_tables(topology, size, peaks=rates)
    changed = dearer(topology, a_leaf(topology), "1.5")
    found = refresh(changed, tables, [a_leaf(topology)], size, peaks=rates)
    whole = build_tables(changed, size, peaks=rates)
    assert all(found.tables[name].same_as(whole[name]) for name in whole)
    assert len(found.rebuilt) < len(whole)

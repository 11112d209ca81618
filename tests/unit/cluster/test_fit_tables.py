"""Spread, pruning, reverse mapping, merging and look-up."""

import numpy as np
import pytest

from spillway.cluster.fit.build import MAX_LIMITS, build_table, build_tables, implied_removed
from spillway.cluster.fit.decide import shed
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.prune import prune, undominated
from spillway.cluster.fit.spread import MaxError, TableSize
from spillway.cluster.fit.topology import Arc, Input, Node, Output, Path, Topology, exact
from spillway.errors import SpillwayError


def leaf(name: str, *costs: str, capacity: str = "1", weights: list[str] | None = None) -> Node:
    weights = weights or ["1"] * len(costs)
    return Node(
        name=name,
        inputs=tuple(Input(name=str(k)) for k in range(len(costs))),
        paths=tuple(
            Path(
                source=str(k),
                cost=exact(c),
                to=Output(query=f"{name}.{k}", weight=exact(weights[k])),
            )
            for k, c in enumerate(costs)
        ),
        capacity=exact(capacity),
    )


def feeding(
    name: str, *arcs: tuple[str, str, str, str], cost: str = "0", capacity: str = "1"
) -> Node:
    """One input that splits into arcs of (child, input, cost, selectivity)."""
    return Node(
        name=name,
        inputs=(Input(name="in", cost=exact(cost)),),
        paths=tuple(
            Path(
                source="in",
                cost=exact(c),
                selectivity=exact(s),
                to=Arc(node=child, input=entry),
            )
            for child, entry, c, s in arcs
        ),
        capacity=exact(capacity),
    )


def test_a_row_at_the_capacity_belongs_to_the_table_despite_rounding() -> None:
    table = build_table(leaf("n", "0.1", "0.7"), {}, MaxError(score=exact("0.2")))
    # multiples of 0.1: a + 7 b <= 100
    assert table.rows == sum(1 for a in range(101) for b in range(15) if a + 7 * b <= 100)


def test_a_maximum_error_beyond_the_bound_states_the_larger_error() -> None:
    fine = MaxError(score=exact("0.001"), rows=50)
    table = build_table(leaf("n", "1", "1"), {}, fine)
    assert table.rows <= 50
    assert table.error > 0.001


def test_a_table_size_is_never_exceeded() -> None:
    for rows in (4, 10, 64, 300):
        assert build_table(leaf("n", "1", "3"), {}, TableSize(rows=rows)).rows <= rows


def test_more_inputs_than_the_size_allows_are_refused_with_the_fix() -> None:
    with pytest.raises(SpillwayError, match=r"2\^m rows or more, here 32"):
        build_table(leaf("n", *["1"] * 5), {}, TableSize(rows=16))


def test_dominated_rows_are_those_that_ask_for_more_and_score_no_more() -> None:
    costs = np.array([[0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 2.0, 0.0]])
    scores = np.array([0.0, 5.0, 5.0, 4.0])
    assert sorted(undominated(costs, scores)) == [0, 1, 3]


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_thinning_loses_no_more_than_it_states_and_keeps_the_empty_row(columns: int) -> None:
    rng = np.random.default_rng(columns)
    costs = np.concatenate((np.zeros((columns, 1)), rng.uniform(0, 1, (columns, 3000))), axis=1)
    scores = costs.sum(axis=0) * rng.uniform(0.5, 1.0, 3001)
    kept, error = prune(costs, scores, 40)
    assert len(kept) <= 40
    assert 0 in kept
    for row in range(len(scores)):
        fits = (costs[:, kept] <= costs[:, [row]]).all(axis=0)
        assert scores[kept][fits].max() >= scores[row] - error - 1e-12


def test_rates_are_mapped_back_through_selectivity() -> None:
    child = build_table(leaf("c", "1"), {}, TableSize(rows=5))
    parent = build_table(feeding("p", ("c", "0", "0", "0.5")), {"c": child}, TableSize(rows=5))
    assert parent.rates[0] == pytest.approx(child.rates[0] / 0.5)
    assert parent.scores == pytest.approx(child.scores)
    assert parent.error == child.error


def test_rows_that_the_parent_cannot_carry_are_removed() -> None:
    child = build_table(leaf("c", "1"), {}, TableSize(rows=11))
    parent = build_table(
        feeding("p", ("c", "0", "2", "1"), capacity="1"), {"c": child}, TableSize(rows=11)
    )
    assert parent.rates.max() == pytest.approx(0.5)


def test_a_split_propagates_the_larger_rate_and_drops_the_rest_locally() -> None:
    node = feeding("p", ("b", "0", "0.01", "1"), ("c", "0", "0.01", "1"))
    topology = Topology((node, leaf("b", "1"), leaf("c", "4")))
    tables = build_tables(topology, MaxError(score=exact("0.01")))
    found = shed(topology, tables, {("p", "in"): 2.0})
    assert found.plans["p"].input_keep[0] == pytest.approx(0.5)
    assert found.plans["p"].path_keep == pytest.approx((1.0, 0.25), abs=0.01)
    assert not found.plans["b"].sheds
    assert not found.plans["c"].sheds


def test_a_node_with_children_and_outputs_of_its_own_reaches_the_optimum() -> None:
    node = Node(
        name="p",
        inputs=(Input(name="in", cost=exact("0.1")),),
        paths=(
            Path(source="in", cost=exact("0.2"), to=Arc(node="c", input="0")),
            Path(source="in", cost=exact("0.5"), to=Output(query="own")),
        ),
    )
    topology = Topology((node, leaf("c", "2")))
    tables = build_tables(topology, MaxError(score=exact("0.02")))
    rates = {("p", "in"): 3.0}
    best = optimum(topology, rates).score
    found = shed(topology, tables, rates)
    assert tables["p"].error == pytest.approx(0.04)
    assert best - found.score <= tables["p"].error
    assert max(found.loads.values()) <= 1.0 + 1e-9


def test_a_fine_grid_of_own_outputs_survives_the_merge_with_a_child() -> None:
    node = Node(
        name="p",
        inputs=(Input(name="a"), Input(name="b")),
        paths=(
            Path(source="a", cost=exact("0.2"), to=Arc(node="c", input="0")),
            Path(source="a", cost=exact("0.5"), to=Output(query="a")),
            Path(source="b", cost=exact("0.5"), to=Output(query="b")),
        ),
    )
    topology = Topology((node, leaf("c", "2")))
    tables = build_tables(topology, MaxError(score=exact("0.02")))  # 10,000 points and more
    rates = {("p", "a"): 1.0, ("p", "b"): 2.0}
    best = optimum(topology, rates).score
    assert best - shed(topology, tables, rates).score <= tables["p"].error < 0.3 * best


def test_the_region_without_overload_is_exact_between_grid_points() -> None:
    table = build_table(leaf("n", "3", "1"), {}, TableSize(rows=6))
    assert not table.look_up((0.2, 0.4)).sheds
    assert table.look_up((0.2, 0.41)).sheds


def test_a_table_too_coarse_for_the_rates_cuts_all_inputs_alike() -> None:
    table = build_table(leaf("n", "1", "1", capacity="100"), {}, TableSize(rows=4))
    plan = table.look_up((60.0, 60.0))
    assert plan.input_keep == pytest.approx((100 / 120, 100 / 120))
    assert plan.score == pytest.approx(100.0)
    assert plan.sheds


def test_peaks_bring_the_rows_to_where_the_rates_are() -> None:
    node = leaf("n", "1", "1")
    wide = build_table(node, {}, TableSize(rows=64))
    near = build_table(node, {}, TableSize(rows=64), peaks=np.array([0.2, 1.0]))
    assert near.rates[0].max() <= 0.2 * (1 + 1e-8)
    assert near.error < wide.error


def test_weights_decide_who_is_shed() -> None:
    table = build_table(leaf("n", "1", "1", weights=["1", "3"]), {}, TableSize(rows=64))
    assert table.look_up((1.0, 1.0)).input_keep == pytest.approx((0.0, 1.0))


def test_an_input_that_is_worth_more_has_finer_steps() -> None:
    """A step costs at most what it is worth, so points go to where the score is."""
    for weights in (["1", "9"], ["9", "1"]):
        table = build_table(leaf("n", "1", "1", weights=weights), {}, TableSize(rows=64))
        levels = [len(np.unique(row.round(9))) for row in table.rates]
        assert (levels[0] < levels[1]) == (weights[0] < weights[1]), levels


def test_a_higher_priority_is_served_first_however_dear_it_is() -> None:
    node = Node(
        name="n",
        inputs=(Input(name="low"), Input(name="high")),
        paths=(
            Path(source="low", cost=exact(1), to=Output(query="low")),
            Path(source="high", cost=exact(50), to=Output(query="high", priority=1)),
        ),
    )
    plan = build_table(node, {}, TableSize(rows=200)).look_up((1.0, 0.02))
    assert plan.input_keep[1] == pytest.approx(1.0)
    assert plan.input_keep[0] == pytest.approx(0.0)


def test_a_look_up_with_the_wrong_number_of_rates_is_refused() -> None:
    with pytest.raises(SpillwayError, match="got 1 rates: it has 2 inputs"):
        build_table(leaf("n", "1", "1"), {}, TableSize(rows=9)).look_up((1.0,))


def test_a_node_without_capacity_sheds_everything() -> None:
    plan = build_table(leaf("n", "1", capacity="0"), {}, TableSize(rows=4)).look_up((1.0,))
    assert plan.input_keep == (0.0,)


def test_cycles_and_double_feeds_are_refused() -> None:
    a = feeding("a", ("b", "in", "1", "1"))
    with pytest.raises(SpillwayError, match="cycle"):
        Topology((a, feeding("b", ("a", "in", "1", "1"))))
    with pytest.raises(SpillwayError, match="fed by two paths"):
        Topology((feeding("a", ("c", "0", "1", "1"), ("c", "0", "1", "1")), leaf("c", "1")))


@pytest.mark.parametrize("rows", [3, MAX_LIMITS, MAX_LIMITS + 1, 5 * MAX_LIMITS])
def test_limits_that_are_too_many_become_fewer_and_none_is_forgotten(rows: int) -> None:
    """On an arc none implies another; what stays is at least as strict as what was there."""
    angles = np.linspace(0.01, np.pi / 2 - 0.01, rows)
    limits = np.column_stack((np.cos(angles), np.sin(angles)))
    left = implied_removed(np.concatenate((limits, 0.5 * limits, limits)))
    assert len(left) == min(rows, MAX_LIMITS)
    for row in limits:
        assert (left >= row - 1e-12).all(axis=1).any()

"""The FIT paper's printed examples, and where its numbers do not follow from its formulas."""

from fractions import Fraction

import pytest

from spillway.cluster.fit.build import build_table, build_tables
from spillway.cluster.fit.decide import shed
from spillway.cluster.fit.spread import MaxError, spreads_of_error
from spillway.cluster.fit.table import FeasibleInputTable
from spillway.cluster.fit.topology import exact
from spillway_lab.experiments.fit import paper
from spillway_lab.experiments.fit.example import TABLE_1, consequences, split_at
from spillway_lab.experiments.fit.spread import B_AXES

TENTH = MaxError(score=exact("0.1"))


def table_of_b(error: str = "0.1") -> FeasibleInputTable:
    node = paper.node_b(paper.SECTION_3_SELECTIVITY)
    return build_table(node, {}, MaxError(score=exact(error)))


@pytest.mark.parametrize("plan", range(5))
def test_table_1_follows_exactly_from_costs_and_a_fair_scheduler(plan: int) -> None:
    rates, *printed = TABLE_1[plan]
    assert consequences(rates) == tuple(printed)


def test_node_a_finds_plan_4_from_its_childs_table() -> None:
    topology = paper.figure_1(paper.TABLE_1_SELECTIVITY)
    tables = build_tables(topology, TENTH)
    found = shed(topology, tables, {("A", "1"): 1.0, ("A", "2"): 1.0})
    assert found.delivered == pytest.approx({"q1": 0.2, "q2": 0.4})
    assert found.loads == pytest.approx({"A": 1.0, "B": 1.0})
    assert not found.plans["B"].sheds


def test_spreads_of_node_b_are_a_tenth_and_a_twentieth() -> None:
    assert spreads_of_error(B_AXES, TENTH) == (Fraction(1, 10), Fraction(1, 20))


def test_node_b_has_48_entries_where_the_paper_prints_46() -> None:
    table = table_of_b()
    assert table.rows == 48
    assert table.error == pytest.approx(0.1)
    best = table.best_row((9.0, 9.0))
    assert (tuple(table.rates[:, best]), table.scores[best]) == ((0.0, 1.0), 1.0)


def test_adding_up_the_spread_in_floating_point_gives_the_papers_46() -> None:
    entries, r1 = 0, 0.0
    while r1 <= 1 / 3:
        r2 = 0.0
        while r2 <= 1.0:
            entries += 3 * r1 + r2 <= 1.0
            r2 += 0.05
        r1 += 0.1
    assert entries == 46


def test_inputs_below_a_feasible_point_are_not_overloaded() -> None:
    plan = table_of_b().look_up((0.2, 0.35))
    assert not plan.sheds
    assert plan.row is None


def test_overloaded_inputs_go_down_to_the_best_row_of_the_grid() -> None:
    plan = table_of_b().look_up((0.5, 0.5))
    assert plan.input_keep == pytest.approx((0.2, 1.0))
    assert plan.score == pytest.approx(0.55)


def test_the_papers_row_appears_on_a_grid_of_half_the_spread() -> None:
    plan = table_of_b("0.05").look_up((0.5, 0.5))
    assert plan.input_keep == pytest.approx((0.3, 1.0))
    assert plan.score == pytest.approx(0.575)


def test_a_split_drops_60_percent_below_instead_of_at_the_input() -> None:
    dropped, score = split_at(0.2)
    assert dropped == pytest.approx(0.6)
    assert score == pytest.approx(0.28)


def test_a_split_accepts_up_to_a_third_and_sheds_nothing_up_to_an_eighth() -> None:
    table = build_table(paper.figure_3(), {}, MaxError(score=exact("0.001")))
    assert 1 / 3 - 0.001 < table.rates.max() <= 1 / 3
    assert not table.look_up((0.125,)).sheds
    assert table.look_up((0.126,)).sheds
    plain = table.scores[table.rates[0] <= 0.125].max()
    assert plain == pytest.approx(0.25, abs=0.002)

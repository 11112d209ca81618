"""Costs and selectivities from the counters of an executed plan."""

import pytest

from spillway.costs.costs import OperatorCost, PlanNode, cost_table, operator_costs
from spillway.errors import SpillwayError


def rows(count: int) -> dict[str, tuple[int, str]]:
    return {"numOutputRows": (count, "sum")}


def plan(scale: int = 1) -> PlanNode:
    """sink <- pipeline 2 <- aggregate <- exchange <- pipeline 1 <- project <- filter <- scan."""
    scan = PlanNode(name="MicroBatchScan", metrics=rows(1000 * scale))
    kept = PlanNode(name="Filter", metrics=rows(250 * scale), children=(scan,))
    project = PlanNode(name="Project", metrics={}, children=(kept,))
    first = PlanNode(
        name="WholeStageCodegen (1)",
        metrics={"pipelineTime": (400 * scale, "timing")},
        children=(project,),
    )
    exchange = PlanNode(
        name="Exchange",
        metrics={
            "shuffleRecordsWritten": (250 * scale, "sum"),
            "shuffleWriteTime": (5_000_000 * scale, "nsTiming"),
            "fetchWaitTime": (9000, "timing"),
        },
        children=(first,),
    )
    total = PlanNode(
        name="HashAggregate",
        metrics=rows(10 * scale) | {"aggTime": (30 * scale, "timing")},
        children=(exchange,),
    )
    second = PlanNode(
        name="WholeStageCodegen (2)",
        metrics={"pipelineTime": (100 * scale, "timing")},
        children=(total,),
    )
    return PlanNode(name="WriteToDataSourceV2", metrics={}, children=(second,))


def by_name(costs: tuple[OperatorCost, ...]) -> dict[str, OperatorCost]:
    return {cost.name: cost for cost in costs}


def test_selectivity_is_rows_out_over_rows_in() -> None:
    found = by_name(operator_costs(plan()))
    assert found["Filter"].selectivity == 0.25
    assert found["HashAggregate"].selectivity == 0.04
    assert found["MicroBatchScan"].selectivity is None


def test_operators_that_do_not_count_hand_their_rows_on() -> None:
    project = by_name(operator_costs(plan()))["Project"]
    assert (project.rows_in, project.rows_out) == (250, 250)


def test_times_are_those_that_spark_measured() -> None:
    found = by_name(operator_costs(plan()))
    assert found["WholeStageCodegen (2)"].busy_s == pytest.approx(0.1)
    assert found["HashAggregate"].busy_s == pytest.approx(0.03)
    assert found["Filter"].busy_s is None


def test_waiting_for_another_stage_is_no_work() -> None:
    assert by_name(operator_costs(plan()))["Exchange"].busy_s == pytest.approx(0.005)


def test_cost_per_tuple_counts_what_enters_the_stage() -> None:
    found = by_name(operator_costs(plan()))
    assert found["WholeStageCodegen (1)"].cost_s == pytest.approx(0.4 / 1000)
    assert found["WholeStageCodegen (2)"].cost_s == pytest.approx(0.1 / 250)
    assert found["HashAggregate"].cost_s == pytest.approx(0.03 / 250)
    scan = PlanNode(name="Scan", metrics=rows(10) | {"scanTime": (20, "timing")})
    assert operator_costs(scan)[0].cost_s == pytest.approx(0.002)


def test_batches_add_up() -> None:
    both = operator_costs(plan().plus(plan(scale=3)))
    assert by_name(both)["Filter"].rows_in == 4000
    assert by_name(both)["WholeStageCodegen (1)"].busy_s == pytest.approx(1.6)


def test_another_plan_is_not_added_up() -> None:
    with pytest.raises(SpillwayError, match="plan changed"):
        plan().plus(PlanNode(name="Other", metrics={}))


def test_the_table_has_a_line_for_every_operator() -> None:
    costs = operator_costs(plan())
    assert len(cost_table(costs, "costs").rows) == len(costs) == 8

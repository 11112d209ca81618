"""What a node tells others of its queries' costs, from what its driver knows."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spillway.classes.balance import FIXED_AT_MOST, QueryLoad, longest_interval_s
from spillway.hosts.cluster.duties import Duty, names_of
from spillway.hosts.cluster.node_view import costs
from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.model import Target

NOW_S = 1_000.0
TARGET = Target.parse("10s")


def batch(ended_s: float, kept: int, results: int | None) -> DeliveredBatch:
    return DeliveredBatch(
        gate="q/s",
        seq=1,
        ended_s=ended_s,
        duration_s=1.0,
        offered_tuples=2 * kept,
        kept_tuples=kept,
        mean_delay_s=1.0,
        quantile_delays_s=np.zeros(4),
        results=results,
    )


def application(load: QueryLoad, batches: list[DeliveredBatch], streams: int = 1) -> Any:
    """Of one query on one slot."""
    turns = SimpleNamespace(slots=1)
    dispatcher = SimpleNamespace(
        control=SimpleNamespace(turns=turns), loads=lambda name: {"q": load}
    )
    given = SimpleNamespace(class_name="default")
    return SimpleNamespace(
        classes={"default": SimpleNamespace(priority=3)},
        delivered=lambda name: batches,
        dispatcher=dispatcher,
        flow=SimpleNamespace(queries={"q": given}),
        progress={},
        streams_of=lambda name: ("s",) * streams,
        target=lambda name: TARGET,
    )


MINE = {"q": "q"}
LOAD = QueryLoad(rate_per_s=700.0, fixed_s=0.5, cost_s=0.004)
OFTEN = [batch(NOW_S - second, 100, 30) for second in range(1, 60)]


def test_costs_are_those_that_the_gates_have_learned() -> None:
    [found] = costs(application(LOAD, OFTEN), MINE, NOW_S)
    assert (found.query, found.cost_s, found.offered_per_s) == ("q", 0.004, 700.0)
    assert found.selectivity == pytest.approx(0.3)
    assert found.priority == 3
    assert found.modelled


def test_the_fixed_price_counts_as_seldom_as_the_target_allows() -> None:
    full = QueryLoad(rate_per_s=250.0, fixed_s=0.5, cost_s=0.004)
    [found] = costs(application(LOAD, OFTEN), MINE, NOW_S)
    assert found.fixed_cores == pytest.approx(0.5 / longest_interval_s(full, TARGET))


def test_batches_that_come_less_often_than_that_count_as_they_come() -> None:
    seldom = [batch(NOW_S - 30.0, 100, 30)]
    [found] = costs(application(LOAD, seldom), MINE, NOW_S)
    assert found.fixed_cores == pytest.approx(0.5 / 60.0)


def test_a_fixed_price_beyond_the_target_takes_no_more_than_half() -> None:
    slow = QueryLoad(rate_per_s=700.0, fixed_s=30.0, cost_s=0.004)
    [found] = costs(application(slow, OFTEN), MINE, NOW_S)
    assert found.fixed_cores == FIXED_AT_MOST


def test_nothing_is_said_before_results_were_counted() -> None:
    assert costs(application(LOAD, []), MINE, NOW_S) == ()
    assert costs(application(LOAD, [batch(NOW_S - 1.0, 100, None)]), MINE, NOW_S) == ()


def test_a_query_of_several_streams_is_outside_the_model() -> None:
    [found] = costs(application(LOAD, OFTEN, streams=2), MINE, NOW_S)
    assert not found.modelled


def test_it_goes_by_the_querys_name_and_a_successor_is_left_out() -> None:
    later = {"q": Duty(name="counts", epoch=1, generation=2, query={}, reason="")}
    [found] = costs(application(LOAD, OFTEN), names_of(later), NOW_S)
    assert found.query == "counts"
    follows = {"q": replace(later["q"], follows=1)}
    assert costs(application(LOAD, OFTEN), names_of(follows), NOW_S) == ()

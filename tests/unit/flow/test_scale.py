"""`scale` in a flow file: what is refused, in one line, before Spark starts."""

from typing import Any

import pytest
from pydantic import ValidationError

from spillway.check.problems import problems_of
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.scale import DYNAMIC, Scale, require_scalable

FLOW: dict[str, Any] = {
    "streams": {"clicks": {"source": "synthetic"}},
    "classes": {"gold": {"delay": "2s"}},
    "queries": {"a": {"class": "gold", "sql": "SELECT * FROM clicks"}},
    "scale": {"max": 8},
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"min": 4, "max": 2}, "max is 2: it must be at least min, 4"),
        ({"max": 0}, "greater than or equal to 1"),
        ({"max": 8, "policy": "sarso"}, "sarsa"),
        ({"max": 8, "lower": 0.9}, "they must ascend"),
        ({"max": 8, "executor_price": 1.0}, "executor_price needs shed_price"),
        ({}, "max"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Scale.model_validate(given)


def test_a_master_without_executors_and_a_second_hand_on_them_are_refused() -> None:
    require_scalable("spark://host:7077", "false")
    require_scalable("local-cluster[2,1,1024]", "false")
    for master in ("local[*,4]", "local", None):
        with pytest.raises(SpillwayError, match="scale needs a cluster"):
            require_scalable(master, "false")
    with pytest.raises(SpillwayError, match="both decide"):
        require_scalable("yarn", "true")


def test_check_says_so_where_the_file_names_the_master() -> None:
    def found(spark: dict[str, Any]) -> list[str]:
        return [p.text for p in problems_of(Flow.model_validate({**FLOW, "spark": spark}))]

    assert found({}) == []  # `run --master` may name one
    assert found({"master": "spark://host:7077"}) == []
    assert "scale needs a cluster" in found({"master": "local[2]"})[0]
    dynamic = {"master": "yarn", "config": {DYNAMIC: True}}
    assert "both decide" in found(dynamic)[0]


def test_nodes_and_executors_are_not_both_added() -> None:
    with pytest.raises(ValidationError, match="exclude each other"):
        Flow.model_validate({**FLOW, "cluster": {}})


def test_without_a_price_executors_are_started_without_counting() -> None:
    assert Scale(max=8).prices is None
    priced = Scale(max=8, shed_price=1.0, executor_price=6.0).prices
    assert priced is not None
    assert priced.node() == pytest.approx(1.0)

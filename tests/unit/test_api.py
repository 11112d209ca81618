from pathlib import Path
from typing import Any

import pytest

from spillway.api import Flow, attach, scale
from spillway.errors import SpillwayError


def market() -> Flow:
    flow = Flow("market")
    flow.stream("ticks", source="synthetic", event_time="event_time")
    flow.service_class("gold", delay="p95 2s", priority=3)
    flow.query(
        "averages",
        class_="gold",
        template="SELECT key, value FROM ticks WHERE key = :key",
        instances=[{"key": 1}, {"key": 2}],
    )
    return flow


def test_a_flow_in_python_has_the_plan_of_its_flow_file() -> None:
    [query] = market().plan().queries
    assert query.gates == ("averages/ticks",)
    assert query.fused == "2 instances as one plan"


def test_a_bad_part_is_refused_where_it_is_given() -> None:
    flow = market()
    with pytest.raises(SpillwayError, match=r"classes\.iron\.priority is 0: it must be at least 1"):
        flow.service_class("iron", delay="2s", priority=0)
    with pytest.raises(
        SpillwayError, match=r"queries\.q: .*exactly one of sql, template and python"
    ):
        flow.query("q", class_="gold")


def test_names_that_must_exist_elsewhere_are_checked_for_the_whole_flow() -> None:
    flow = market()
    flow.query("other", class_="glod", sql="SELECT * FROM ticks")
    with pytest.raises(SpillwayError, match="did you mean 'gold'"):
        flow.model()


GOLD: dict[Any, Any] = {"gold": {"delay": "1s"}}


@pytest.mark.parametrize(
    "given",
    [
        {"classes": None},
        {"classes": {}},
        {"classes": {"gold": None}},
        {"classes": {3: {"delay": "1s"}}},
        {"classes": {"[red]": {"delay": "1s"}}},
        {"classes": {"../x": {"delay": "1s"}}},
        {"classes": {"gold": {"delay": float("nan")}}},
        {"classes": {"gold": {"delay": "1s", "manager": "pid"}}},
        {"classes": {"gold": {"delay": "1s", "priority": "9" * 5000}}},
        {"classes": GOLD, "period": "soon"},
        {"classes": GOLD, "folder": "\0"},
        {"classes": GOLD, "watch": 7},
        {"classes": GOLD, "watch": "nonsense"},
    ],
)
def test_what_cannot_be_attached_is_refused_in_a_line_before_anything_is_begun(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpillwayError) as refused:
        attach(None, **given)
    assert len(refused.value.problems) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        {"delay": None, "max": 2},
        {"delay": "soon", "max": 2},
        {"delay": "1s"},
        {"delay": "1s", "max": -1},
        {"delay": "1s", "max": float("nan")},
        {"delay": "1s", "max": 1e99},
        {"delay": "1s", "max": 2, "min": 3},
        {"delay": "1s", "max": 2, "policy": "[red]"},
        {"delay": "1s", "max": 2, "fewest": 1},
    ],
)
def test_what_cannot_scale_is_refused_in_a_line(given: dict[str, Any]) -> None:
    spark: Any = None
    with pytest.raises(SpillwayError) as refused:
        scale(spark, **given)
    assert len(refused.value.problems) == 1

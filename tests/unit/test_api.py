import pytest

from spillway.api import Flow
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

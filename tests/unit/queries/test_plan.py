import pytest

from spillway.errors import SpillwayError
from spillway.queries.flow import Flow
from spillway.queries.plan import plan_of


def flow(sql: str) -> Flow:
    return Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic"}, "orders": {"source": "synthetic"}},
            "classes": {"gold": {"delay": "2s", "priority": 3}, "bronze": {"delay": "5s"}},
            "queries": {"q": {"sql": sql, "class": "gold"}},
        }
    )


def test_every_stream_of_a_query_gets_a_gate_of_its_own() -> None:
    plan = plan_of(flow("WITH t AS (SELECT * FROM ticks) SELECT * FROM t JOIN orders USING (id)"))
    assert plan.queries[0].gates == ("q/ticks", "q/orders")
    assert plan.quotas == {"gold": 0.75, "bronze": 0.25}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM tick", "did you mean 'ticks'"),
        ("SELECT FROM WHERE", "queries.q.sql cannot be parsed at line 1"),
        ("DROP TABLE ticks", "must be a SELECT"),
        ("SELECT 1", "reads no stream"),
    ],
)
def test_bad_sql_is_refused_before_spark_starts(sql: str, expected: str) -> None:
    with pytest.raises(SpillwayError, match=expected) as caught:
        plan_of(flow(sql))
    assert "\n" not in str(caught.value)

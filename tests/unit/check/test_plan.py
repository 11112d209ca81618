import pytest
import sqlglot

from spillway.check.plan import plan_of
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.sql import parse, text_of


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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window(ts, '9 s') AS w, count(*) AS n FROM ticks GROUP BY window(ts, '9 s')",
        "SELECT n FROM ticks WHERE note = 'window (x)' GROUP BY key, window(ts, '1 m', '5 s')",
        "SELECT sum(x) OVER w FROM ticks WINDOW w AS (PARTITION BY key)",
    ],
)
def test_time_windows_are_understood_wherever_spark_allows_them(sql: str) -> None:
    printed = text_of(parse("q", sql))
    assert words(printed) == words(sql)


def words(sql: str) -> list[str]:
    return [token.text.upper() for token in sqlglot.tokenize(sql, read="spark")]

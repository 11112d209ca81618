"""SQL against declared columns: what Spark is sure to refuse is named, all else is left alone."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spillway.check.analysis import analysed
from spillway.check.columns import Columns

STREAMS: dict[str, Columns | None] = {
    "s": {
        "a": LongType(),
        "b": DoubleType(),
        "st": StructType([StructField("x", LongType())]),
        "arr": ArrayType(LongType()),
        "ts": TimestampType(),
    },
    "t": {"a": LongType(), "c": StringType()},
    "u": None,  # nobody knows
}


@pytest.mark.parametrize(
    ("sql", "line", "expected"),
    [
        ("SELECT aa FROM s", 1, "there is no column 'aa': did you mean 'a'?"),
        ("SELECT a,\n  bb\nFROM s", 2, "there is no column 'bb'"),
        ("SELECT s.zz FROM s", 1, "there is no column 'zz' of s"),
        ("SELECT x.zz FROM s AS x", 1, "there is no column 'zz' of x"),
        ("SELECT a FROM s\nWHERE cc > 1", 2, "there is no column 'cc'"),
        ("SELECT a FROM s ORDER BY nope", 1, "'nope'"),
        ("SELECT a FROM s WHERE a IN (\nSELECT a FROM t WHERE zz = 1)", 2, "'zz'"),
        ("WITH w AS (SELECT a AS k FROM s)\nSELECT a FROM w", 2, "there is no column 'a'"),
        ("SELECT k.b FROM (SELECT a FROM s) AS k", 1, "no column 'b' of k"),
        ("SELECT a FROM s JOIN t ON s.a = t.a", 1, "column 'a' is in s and t: say which"),
        ("SELECT cuont(*) FROM s", 1, "cuont() is no function of Spark SQL: did you mean count?"),
        ("SELECT getdate() FROM s", 1, "getdate() is no function"),
        ("SELECT sum(ts) FROM s", 1, "sum of 's.ts', which is timestamp: it takes numbers"),
        ("SELECT ts * 2 FROM s", 1, "it takes numbers"),
        ("SELECT count(*) FROM s GROUP BY window(a, '1 minute')", 1, "window over 's.a'"),
        ("SELECT a FROM s WHERE sum(b) > 1", 1, "an aggregate belongs into HAVING"),
        ("SELECT a, count(*) FROM s", 1, "column 'a' is neither in GROUP BY"),
        ("SELECT a, b + 1, count(*) FROM s GROUP BY a", 1, "column 'b' is neither in GROUP BY"),
        ("SELECT a FROM s UNION ALL SELECT a, c FROM t", 1, "UNION of 1 columns with 2"),
    ],
)
def test_what_spark_would_refuse_is_named_with_its_line(sql: str, line: int, expected: str) -> None:
    [problem] = analysed("q", sql, STREAMS).problems
    assert expected in problem.text
    assert problem.line == line


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM s",
        "SELECT A, `B` FROM S",
        "SELECT a + 1 AS d, d * 2 AS e FROM s",
        "SELECT st.x, s.st.x, arr[0], s.* FROM s",
        "SELECT explode(arr) AS q FROM s",
        "SELECT q + 1 FROM s LATERAL VIEW explode(arr) t AS q",
        "SELECT transform(arr, x -> x + a), filter(arr, (e, i) -> e > i) FROM s",
        "SELECT aggregate(arr, 0L, (acc, v) -> acc + v) FROM s",
        "SELECT a FROM s JOIN t USING (a)",
        "SELECT s.a FROM s LEFT SEMI JOIN t ON s.a = t.a",
        "SELECT s.a, t.c FROM s JOIN t ON s.a = t.a AND s.ts > current_timestamp()",
        "WITH w(x, y) AS (SELECT a, b FROM s) SELECT x FROM w WHERE y > 1",
        "SELECT x.n FROM (SELECT a, count(*) AS n FROM s GROUP BY a) AS x",
        "SELECT `count(1)` FROM (SELECT count(*) FROM s)",
        "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.a = s.a AND b > 1)",
        "SELECT window.start, count(*) FROM s GROUP BY window(ts, '1 minute')",
        "SELECT window, key2 FROM (SELECT window(ts, '1 minute') AS window, a AS key2 FROM s)",
        "SELECT session_window.start, count(*) FROM s GROUP BY session_window(ts, '1 minute')",
        "SELECT * EXCEPT (a) FROM s",
        "SELECT extract(hour FROM ts), timestampadd(HOUR, 1, ts), date_trunc('hour', ts) FROM s",
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE c END AS k FROM t",
        "SELECT current_date, current_user, a::string, try_cast(b AS INT) FROM s",
        "SELECT a AS x FROM s GROUP BY x HAVING x > 1",
        "SELECT a % 2 AS parity, sum(b) AS v FROM s GROUP BY a % 2 HAVING v > 1",
        "SELECT a, grouping(a), sum(b) FROM s GROUP BY CUBE (a)",
        "SELECT a, sum(b) FROM s GROUP BY 1",
        "SELECT a, sum(b) FROM s GROUP BY ALL",
        "SELECT upper(c), count(*) FILTER (WHERE a > 1) FROM t GROUP BY upper(c)",
        "SELECT * FROM s PIVOT (sum(b) FOR a IN (1, 2))",
        "SELECT from_json(c, 'x int').x FROM t",
        "SELECT foo FROM u",
        "SELECT foo, s.a FROM u, s",
        "SELECT _arrival, a FROM s",
        "SELECT a FROM s WHERE ts > '2020-01-01' AND ts < ts + INTERVAL 1 DAY AND b * 1.5 > a % 2",
        "SELECT /*+ BROADCAST(t) */ s.a FROM s JOIN t ON s.a = t.a",
        "SELECT a FROM s UNION ALL SELECT a FROM t",
        "SELECT max_by(a, b), percentile_approx(b, 0.5), count_if(a > 1), bool_or(b > 1) FROM s",
    ],
)
def test_what_spark_takes_is_taken(sql: str) -> None:
    assert analysed("q", sql, STREAMS).problems == ()


def test_the_columns_of_the_result_are_known() -> None:
    found = analysed("q", "SELECT *, a AS d, b FROM (SELECT a, b FROM s)", STREAMS).columns
    assert found is not None
    assert list(found)[:3] == ["a", "b", "d"]
    assert found["d"] == LongType()

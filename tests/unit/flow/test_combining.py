"""Which queries are computed in parts, with what text, and why the others are not."""

import pytest
from pyspark.sql.types import StructField, StructType

from spillway.errors import SpillwayError
from spillway.flow.combining import Combined, combined, require_one_stream
from spillway.flow.flow import Flow
from spillway.flow.types import spark_type
from spillway.gate.combination import Combination, Condition, Partial

TYPES = {
    "at": "timestamp",
    "price": "double",
    "n": "int",
    "key": "string",
    "flag": "boolean",
    "cost": "decimal(10,2)",
    "_arrival": "timestamp",
    "_weight": "double",
}
COLUMNS = StructType([StructField(name, spark_type(kind)) for name, kind in TYPES.items()])
PER_WINDOW = "FROM bids GROUP BY window(at, '10 seconds')"


def flow(sql: str, **query: object) -> Flow:
    stream = {"source": "kafka", "event_time": "at", "columns": {"at": "timestamp"}}
    return Flow.model_validate(
        {
            "streams": {"bids": stream, "asks": stream, "timeless": {"source": "kafka"}},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": {"sql": sql, **query}},
        }
    )


def made(sql: str) -> Combined:
    return combined("q", sql, flow(sql), COLUMNS)


def test_aggregates_are_those_of_partial_rows() -> None:
    found = made(
        "SELECT window(at, '10 seconds') AS period, key, count(*) AS n, avg(price) AS mean,"
        " sum(n) AS total, max(key) AS last"
        " FROM bids GROUP BY window(at, '10 seconds'), key"
    )
    assert found.sql == (
        "SELECT WINDOW(at, '10 seconds') AS period, key,"
        " COALESCE(SUM(`_count`), CAST(0 AS BIGINT)) AS n,"
        " (SUM(`_total_price`) / NULLIF(SUM(`_count_price`), 0)) AS mean,"
        " SUM(`_sum_n`) AS total, MAX(`_max_key`) AS last"
        " FROM bids GROUP BY WINDOW(at, '10 seconds'), key"
    )
    combination = found.combination
    assert (combination.time, combination.keys) == ("at", ("key",))
    assert combination.partials == (
        Partial(name="_count", function="count", column=None),
        Partial(name="_total_price", function="total", column="price"),
        Partial(name="_count_price", function="count", column="price"),
        Partial(name="_sum_n", function="sum", column="n"),
        Partial(name="_max_key", function="max", column="key"),
    )
    assert Combination.parse(combination.text()) == combination


@pytest.mark.parametrize(
    ("window", "pane_us", "start_us"),
    [
        ("'10 seconds'", 10_000_000, 0),
        ("'10 seconds', '4 seconds'", 2_000_000, 0),
        ("'1 minute', '1 minute', '3 seconds'", 60_000_000, 3_000_000),
    ],
)
def test_a_pane_lies_in_the_same_windows(window: str, pane_us: int, start_us: int) -> None:
    found = made(f"SELECT max(price) AS m FROM bids GROUP BY window(at, {window})").combination
    assert (found.pane_us, found.start_us) == (pane_us, start_us)


def test_columns_keep_the_names_that_spark_would_give_them() -> None:
    window = "window(at, '10 seconds')"
    found = made(f"SELECT {window}, count(*), Max(bids.price), avg(n), count('x') {PER_WINDOW}")
    names = ("AS `count(1)`", "AS `count(x)`", "AS `max(price)`", "AS `avg(n)`")
    assert all(name in found.sql for name in names)


def test_names_are_found_whatever_their_case_and_their_table() -> None:
    found = made(
        "SELECT b.KEY AS k, sum(B.Price) AS s FROM bids b GROUP BY k, window(AT, '1 second')"
    )
    assert found.combination.keys == ("key",)
    assert found.combination.partials[0].column == "price"


def test_weights_are_summed_in_parts() -> None:
    found = made(f"SELECT sum(_weight) AS n, sum(price * _weight) AS s {PER_WINDOW}").combination
    assert found.partials == (
        Partial(name="_sum__weight", function="sum", column="_weight"),
        Partial(name="_weighted_price", function="weighted", column="price"),
    )


def test_the_reader_judges_comparisons_and_spark_what_is_over_keys() -> None:
    found = made(
        "SELECT key, count(*) AS c FROM bids WHERE price BETWEEN 1 AND 2.5 AND n <> -3"
        " AND (key LIKE 'a%' OR key IS NULL) AND 7 < n AND key = 'b' AND price IS NOT NULL"
        " GROUP BY window(at, '10 seconds'), key"
    )
    assert found.combination.conditions == (
        Condition(column="price", operator=">=", value=1.0),
        Condition(column="price", operator="<=", value=2.5),
        Condition(column="n", operator="<>", value=-3),
        Condition(column="n", operator=">", value=7),
        Condition(column="key", operator="=", value="b"),
        Condition(column="price", operator="is not null"),
    )
    assert "WHERE (key LIKE 'a%' OR key IS NULL) AND _matches GROUP" in found.sql


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT key, count(*) FROM bids GROUP BY key", "no GROUP BY window(at, ...)"),
        ("SELECT at FROM bids", "no aggregate"),
        (
            "SELECT count(*) FROM bids GROUP BY session_window(at, '5 seconds')",
            "no GROUP BY window",
        ),
        ("SELECT count(*) FROM bids GROUP BY window(_arrival, '1 second')", "no watermark"),
        (f"SELECT count(DISTINCT key) AS c {PER_WINDOW}", "over more than a column"),
        (f"SELECT sum(price + 1) AS s {PER_WINDOW}", "over more than a column"),
        (f"SELECT sum(cost) {PER_WINDOW}", "decimal(10,2)"),
        (f"SELECT max(cost) {PER_WINDOW}", "decimal(10,2)"),
        (f"SELECT sum(key) {PER_WINDOW}", "string"),
        (f"SELECT stddev(price) AS s {PER_WINDOW}", "cannot be merged"),
        (f"SELECT count(*), mean(price) AS s {PER_WINDOW}", "may depend on every tuple"),
        (f"SELECT count(*), rand() AS r {PER_WINDOW}", "may depend on every tuple"),
        (f"SELECT count(*) FILTER (WHERE n > 1) AS c {PER_WINDOW}", "a clause of its own"),
        (f"SELECT count(*) + 1 {PER_WINDOW}", "has no name"),
        (f"SELECT len(key), count(*) {PER_WINDOW}, key", "has no name"),
        (f"SELECT count(*) {PER_WINDOW.replace('bids', 'bids TABLESAMPLE (5 ROWS)')}", "as it is"),
        (f"SELECT sum(b) {PER_WINDOW.replace('bids', 'bids AS t(at, b)')}", "as it is"),
        (f"SELECT count(*), at {PER_WINDOW}, at", "outside of its windows"),
        (f"SELECT count(*), cost {PER_WINDOW}, cost", "decimal(10,2)"),
        (f"SELECT DISTINCT count(*) {PER_WINDOW}", "DISTINCT"),
        ("SELECT count(*) FROM bids GROUP BY CUBE(window(at, '1 second'))", "CUBE"),
        ("SELECT count(*) FROM bids GROUP BY window(at, '1 second'), 1", "counts columns"),
        ("SELECT count(*) FROM bids GROUP BY ALL, window(at, '1 second')", ""),
        ("SELECT count(*) FROM (SELECT * FROM bids) GROUP BY window(at, '1 second')", "inside"),
    ],
)
def test_what_cannot_be_merged_says_why(sql: str, why: str) -> None:
    with pytest.raises(SpillwayError) as error:
        made(sql)
    assert why in str(error.value)


@pytest.mark.parametrize(
    "condition",
    [
        "price * 2 > 4",  # an expression
        "n > '5'",  # Spark casts
        "n > 1.5",
        "cost > 1",
        "rand() < 0.5",
        "at > TIMESTAMP'2026-01-01 00:00:00'",
        "price > 1 OR key = 'a'",
    ],
)
def test_conditions_that_only_spark_can_judge_keep_the_tuples(condition: str) -> None:
    per_window = PER_WINDOW.replace("GROUP", f"WHERE {condition} GROUP")
    sql = f"SELECT key, count(*) AS c {per_window}, key"
    with pytest.raises(SpillwayError, match="no comparison with a constant"):
        made(sql)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"sql": f"SELECT count(*) AS c {PER_WINDOW}", "estimate": True}, "bounds of estimates"),
        (
            {"sql": "SELECT count(*) AS c FROM timeless GROUP BY window(at, '1 second')"},
            "event_time",
        ),
        ({"sql": "SELECT count(*) FROM bids JOIN asks USING (key)"}, "several streams"),
        (
            {
                "sql": None,
                "template": "SELECT count(*) FROM bids WHERE n > :x",
                "instances": [{"x": 1}],
            },
            "template",
        ),
    ],
)
def test_queries_of_other_kinds_say_why(query: dict[str, object], why: str) -> None:
    given = flow(**query)  # type: ignore[arg-type]
    with pytest.raises(SpillwayError, match=why):
        require_one_stream("q", given.queries["q"], given)

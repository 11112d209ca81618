"""Which queries can be estimated, and what the others hear before anything runs."""

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from spillway.errors import SpillwayError
from spillway.estimates.budget import (
    Budget,
    needed_keep_fraction,
    parse_error,
    verdict,
)
from spillway.estimates.estimates import estimated
from spillway.estimates.flow import answer_options, answer_sql, check_answers
from spillway.flow.flow import Flow
from spillway.gate.options import GateOptions
from spillway.gate.shedders.catalog import SHEDDERS, asked_shedder
from spillway.gate.shedders.key import Key

WINDOWED = (
    "SELECT window.start AS begin, key, count(*) AS n, avg(value) AS mean FROM s"
    " WHERE value > 0 GROUP BY window(event_time, '10 seconds'), key"
)


def test_every_aggregate_gets_two_bounds_and_every_row_the_fraction_it_saw() -> None:
    text = estimated("q", WINDOWED)
    shown = text.split(" FROM ")[0]
    for column in ("begin", "key", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"):
        assert f"`{column}`" in shown
    assert shown.endswith("_seen")
    assert "WINDOW(event_time, '10 seconds')" in text


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT k, count(DISTINCT v) AS n FROM s GROUP BY k", "COUNT.DISTINCT v.*shedder key"),
        (
            "SELECT k, approx_count_distinct(v) AS n FROM s GROUP BY k",
            "COUNT.DISTINCT v.*ever seen",
        ),
        ("SELECT k, percentile(v, 0.5) AS n FROM s GROUP BY k", "PERCENTILE"),
        ("SELECT k, sum(v) / 2 AS n FROM s GROUP BY k", "SUM.v. / 2.*sink"),
        ("SELECT k, sum(v) FROM s GROUP BY k", "name for 'SUM.v.'"),
        ("SELECT k, sum(DISTINCT v) AS n FROM s GROUP BY k", "DISTINCT"),
        ("SELECT k, v FROM s", "no aggregate"),
        ("SELECT k, count(*) AS n FROM s GROUP BY k HAVING count(*) > 3", "HAVING"),
        ("SELECT s.k, count(*) AS n FROM s JOIN t ON s.k = t.k GROUP BY s.k", "JOIN"),
        ("SELECT k, count(*) AS n FROM (SELECT * FROM s) GROUP BY k", "subquery"),
        ("SELECT count(*) AS n FROM s UNION ALL SELECT count(*) AS n FROM s", "UNION"),
        ("SELECT k, count(*) AS n FROM s GROUP BY k ORDER BY n LIMIT 3", "ORDER BY"),
    ],
)
def test_what_cannot_be_sound_is_refused_by_name(sql: str, named: str) -> None:
    with pytest.raises(SpillwayError, match=named):
        estimated("q", sql)


@pytest.mark.parametrize("name", SHEDDERS)
def test_shedders_whose_samples_are_not_random_are_refused(name: str) -> None:
    options = {option.name: option.example for option in SHEDDERS[name].options}
    shedder = asked_shedder({"shedder": name, **options}, "event_time")
    if SHEDDERS[name].no_sample:
        with pytest.raises(SpillwayError, match=f"shedder '{name}'"):
            estimated("q", WINDOWED, selection=shedder)
    else:
        assert estimated("q", WINDOWED, selection=shedder) == estimated("q", WINDOWED)


BY_KEY = Key(column="k", time_column="t", length_us=60_000_000)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, count(DISTINCT k) AS n FROM s GROUP BY window(t, '10 seconds'), g",
        "SELECT approx_count_distinct(s.k) AS n FROM s GROUP BY window(t, INTERVAL 1 MINUTE)",
        "SELECT window(t, '30 seconds') AS w, min(v) AS n FROM s GROUP BY w",
    ],
)
def test_over_whole_keys_distinct_keys_and_extremes_can_be_estimated(sql: str) -> None:
    text = estimated("q", sql, selection=BY_KEY)
    assert "n_low" in text
    assert "MIN(_weight)" in text


@pytest.mark.parametrize(
    ("aggregate", "window", "named"),
    [
        ("count(DISTINCT v)", "window(t, '10 seconds')", "COUNT.DISTINCT v.*shedder key"),
        ("count(DISTINCT k, v)", "window(t, '10 seconds')", "one column"),
        ("sum(v)", "window(t, '10 seconds')", "sum after shedder 'key'"),
        ("count(DISTINCT k)", "g", "needs GROUP BY window"),
        ("count(DISTINCT k)", "window(t, '45 seconds')", "two epochs of 1m.*epoch of 90s"),
        ("count(DISTINCT k)", "window(t, '10 seconds', '5 seconds')", "no tumbling window"),
        ("count(DISTINCT k)", "window(t, '9 s', '9 s', '1 s')", "no tumbling window"),
        ("count(DISTINCT k)", "window(u, '10 seconds')", "keys change with 't'"),
        ("count(DISTINCT k)", "window(t, '10 seconds'), g % 3", "no column and no window"),
    ],
)
def test_distinct_keys_that_no_single_draw_decides_are_refused(
    aggregate: str, window: str, named: str
) -> None:
    with pytest.raises(SpillwayError, match=named):
        estimated("q", f"SELECT {aggregate} AS n FROM s GROUP BY {window}", selection=BY_KEY)


def test_the_freshest_tuples_are_no_sample_either() -> None:
    with pytest.raises(SpillwayError, match="fresh"):
        estimated("q", WINDOWED, policy="fresh")


def flow(stream: Mapping[str, object], query: Mapping[str, object]) -> Flow:
    return Flow.model_validate(
        {
            "streams": {"s": {"source": "synthetic", "event_time": "event_time", **stream}},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": {"sql": WINDOWED, **query}},
        }
    )


def test_an_estimated_query_asks_its_gate_for_weights_and_leaves_nothing_unread() -> None:
    given = flow({"shedder": "strata", "key": "key"}, {"estimate": True})
    check_answers(given)
    options = answer_options(given.queries["q"], given.streams["s"])
    assert options["weight"] == options["place"] == "true"
    assert options["shedder"] == "strata"
    assert GateOptions.parse(options).min_keep > 0.0


@pytest.mark.parametrize(
    ("stream", "named"),
    [
        ({"shedder": "key"}, "streams.s: shedder 'key' needs option 'key'"),
        ({"shedder": "windows"}, "needs option 'window'"),
        ({"shedder": "windows", "window": "1s", "event_time": None}, "needs the event time"),
    ],
)
def test_a_shedder_without_its_options_is_refused(stream: dict[str, object], named: str) -> None:
    with pytest.raises(SpillwayError, match=named):
        check_answers(flow(stream, {}))


def test_an_unknown_function_is_refused_where_the_stream_is_read() -> None:
    with pytest.raises(ValidationError, match=r"unknown function in utility 'foo\(a\)'"):
        flow({"shedder": "utility", "utility": "foo(a)"}, {})


def test_a_distinct_count_that_updates_its_rows_is_refused() -> None:
    sql = "SELECT count(DISTINCT k) AS n FROM s GROUP BY window(event_time, '10 seconds')"
    stream = {"shedder": "key", "key": "k"}
    check_answers(flow(stream, {"sql": sql, "estimate": True}))
    with pytest.raises(SpillwayError, match=r"queries.q.mode is 'update'"):
        check_answers(flow(stream, {"sql": sql, "estimate": True, "mode": "update"}))


def test_distinct_values_that_spark_cannot_count_are_refused_before_it_starts() -> None:
    sql = "SELECT count(DISTINCT k) AS n FROM s GROUP BY window(event_time, '10 seconds')"
    with pytest.raises(SpillwayError, match="approx_count_distinct"):
        check_answers(flow({}, {"sql": sql}))
    check_answers(flow({}, {"sql": sql.replace("count(DISTINCT k)", "approx_count_distinct(k)")}))


SLIDING = "SELECT key, count(*) AS n FROM s GROUP BY window(event_time, '10 s', '5 s'), key"
SLIDING = SLIDING.replace(" s'", " seconds'")
WHOLE = {"shedder": "windows", "window": "30s"}


def test_results_of_incomplete_sliding_windows_are_left_out() -> None:
    given = flow(WHOLE, {"sql": SLIDING})
    check_answers(given)
    text = answer_sql("q", given.queries["q"], given)
    assert "HAVING" in text
    assert "_kept_from" in text
    assert answer_options(given.queries["q"], given.streams["s"])["kept_from"] == "true"
    tumbling = flow(WHOLE, {})
    assert answer_sql("q", tumbling.queries["q"], tumbling) == WINDOWED
    assert "kept_from" not in answer_options(tumbling.queries["q"], tumbling.streams["s"])


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (SLIDING.replace("'10 seconds', '5 seconds'", "'1 minute'"), "no window of 1m fits"),
        ("SELECT key, count(*) AS n FROM s GROUP BY key", "needs GROUP BY window.event_time"),
        ("SELECT count(*) AS n FROM s", "needs GROUP BY window.event_time"),
        (f"SELECT max(n) AS most FROM ({SLIDING})", "a query around sliding windows"),
    ],
)
def test_whole_windows_that_cannot_be_told_are_refused(sql: str, named: str) -> None:
    with pytest.raises(SpillwayError, match=named):
        check_answers(flow(WHOLE, {"sql": sql}))


def test_sliding_windows_of_a_template_are_refused_behind_whole_windows() -> None:
    query = {"template": f"{SLIDING} HAVING key = :key", "instances": [{"key": 1}], "sql": None}
    with pytest.raises(SpillwayError, match=r"queries\.q\.template has sliding windows"):
        check_answers(flow(WHOLE, query))


def test_an_error_budget_holds_the_gate_open_when_delay_gives() -> None:
    query = {"estimate": True, "error": "5%", "error_tuples": 3000}
    given = flow({}, {**query, "gives": "delay"})
    least = float(answer_options(given.queries["q"], given.streams["s"])["min_keep"])
    assert least == pytest.approx(needed_keep_fraction(0.05, 3000))
    given = flow({}, {**query, "gives": "error"})
    assert float(answer_options(given.queries["q"], given.streams["s"])["min_keep"]) < 0.01


def test_the_needed_fraction_gives_the_error_of_the_formula() -> None:
    for error in (0.01, 0.05, 0.2):
        f = needed_keep_fraction(error, 10_000, 0.95, variation=0.5)
        half = 1.959964 * ((1 - f) * 1.25 / (f * 10_000)) ** 0.5
        assert half == pytest.approx(error, rel=1e-4)


def test_the_verdict_names_what_gives_and_why() -> None:
    def said(gives: str, kept: float, delay_s: float) -> str | None:
        budget = Budget(error=0.05, tuples=1000, needed_fraction=0.6, gives=gives)  # type: ignore[arg-type]
        return verdict(budget, kept_fraction=kept, delay_s=delay_s, target_s=2.0)

    assert said("error", 0.7, 1.9) is None
    assert "error gives" in str(said("error", 0.4, 1.9))
    assert said("delay", 0.6, 1.9) is None
    assert "delay gives" in str(said("delay", 0.6, 3.0))


@pytest.mark.parametrize("text", ["5", "0%", "100%", "five"])
def test_an_error_that_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(SpillwayError, match="error is"):
        parse_error(text)

"""Which queries can be cut while they run, by windows or by rows, and which not, and why."""

from pathlib import Path
from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.cuts import Cut, Rowwise, cut_of, part_of, told_apart
from spillway.hosts.spark.driver.own_windows import START, Windowed

KAFKA = {"type": "kafka", "brokers": "b:1", "topic": "t"}
BY = "GROUP BY window(event_time, '2 seconds')"
COUNTS = f"SELECT window.end AS e, count(*) AS n FROM readings {BY}"


def flow_of(sql: str, **query: Any) -> Flow:
    body = {"sink": KAFKA, "sql": sql, **query}
    stream = {"source": "synthetic", "options": {"rate": 1}, "event_time": "event_time"}
    return Flow.model_validate(
        {
            "streams": {"readings": stream, "others": stream},
            "classes": {"default": {"delay": "1s"}},
            "queries": {"q": body},
        }
    )


def of(sql: str, **query: Any) -> Cut:
    flow = flow_of(sql, **query)
    return cut_of("q", flow.queries["q"], flow)


@pytest.mark.parametrize(
    ("sql", "length_us", "slide_us"),
    [
        (COUNTS, 2_000_000, 2_000_000),
        (f"SELECT key, sum(id) AS n FROM readings WHERE id > 3 {BY}, key", 2_000_000, 2_000_000),
        (
            "SELECT window(event_time, '4 seconds', '1 second') AS w, count(*) AS n FROM readings"
            " GROUP BY w HAVING count(*) > 2",
            4_000_000,
            1_000_000,
        ),
    ],
)
def test_one_aggregate_over_windows_carries_the_start_of_its_window(
    sql: str, length_us: int, slide_us: int
) -> None:
    found = of(sql)
    assert isinstance(found, Windowed)
    assert (found.window.length_us, found.window.slide_us) == (length_us, slide_us)
    assert f".start AS {START}" in found.sql
    assert START not in found.columns


@pytest.mark.parametrize(
    ("sql", "query", "reason"),
    [
        ("SELECT sum(id) AS n FROM readings", {}, "no GROUP BY window"),
        ("SELECT id FROM readings", {"mode": "update"}, "write mode: append"),
        ("SELECT DISTINCT id FROM readings", {}, "DISTINCT"),
        ("SELECT id, (SELECT max(id) FROM others) AS m FROM readings", {}, "several streams"),
        ("SELECT id FROM readings WHERE id IN (SELECT id FROM others)", {}, "several streams"),
        ("SELECT id FROM readings UNION SELECT id FROM readings", {}, "not one SELECT"),
        ("SELECT key, count(*) AS n FROM readings GROUP BY key", {}, "no GROUP BY window"),
        (COUNTS.replace("event_time", "other"), {}, "'other', which has no watermark"),
        (COUNTS, {"mode": "complete"}, "mode complete"),
        (COUNTS, {"sink": {"type": "parquet", "path": "p"}}, "files of one checkpoint"),
        (COUNTS, {"sink": {"type": "python", "call": "m:f"}}, "generations: true"),
        (f"SELECT * FROM ({COUNTS})", {}, "not one SELECT"),
        (f"{COUNTS} UNION ALL {COUNTS}", {}, "not one SELECT"),
        (f"SELECT DISTINCT count(*) AS n FROM readings {BY}", {}, "DISTINCT"),
        (
            f"SELECT count(*) AS n FROM readings JOIN others ON readings.id = others.id {BY}",
            {},
            "several streams",
        ),
        (COUNTS.replace("'2 seconds'", "'1 month'"), {}, "literal durations"),
    ],
)
def test_others_are_refused_with_the_reason(sql: str, query: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpillwayError, match=reason):
        of(sql, **query)


@pytest.mark.parametrize(
    ("sql", "streams"),
    [
        ("SELECT * FROM readings", ("readings",)),
        ("SELECT id AS n FROM (SELECT id FROM readings) WHERE id IN (1, 2)", ("readings",)),
        ("SELECT explode(array(id, key)) AS n FROM readings", ("readings",)),
        ("SELECT id FROM readings UNION ALL SELECT id FROM others", ("readings", "others")),
        ("WITH r AS (SELECT id FROM others) SELECT id FROM r", ("others",)),
    ],
)
def test_a_query_that_looks_at_one_row_at_a_time_is_cut_by_rows(
    sql: str, streams: tuple[str, ...]
) -> None:
    found = of(sql)
    assert isinstance(found, Rowwise)
    assert found.streams == streams
    assert START not in found.sql


def test_the_text_stays_as_it_was_written() -> None:
    text = f"""SELECT  extract(year FROM max(event_time)) AS y, -- the year
        count(*) FILTER (WHERE id IS DISTINCT FROM 3) AS n, max(id) IS DISTINCT FROM 4 AS d
        FROM readings {BY}"""
    found = of(text)
    column = f", WINDOW(event_time, '2 seconds').start AS {START} "
    assert column in found.sql
    assert found.sql.replace(column, "") == text


def test_a_sink_that_keeps_nothing_needs_no_cut(tmp_path: Path) -> None:
    for sink, has_part in (({"type": "noop"}, False), (KAFKA, True)):
        flow = flow_of("SELECT id FROM readings", sink=sink)
        cut = told_apart("q", flow.queries["q"], flow)
        assert cut is not None
        assert (part_of(cut, flow.queries["q"], tmp_path) is not None) is has_part

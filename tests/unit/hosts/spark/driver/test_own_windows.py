"""Which queries' results can be told apart by their windows, and which cannot, with the reason."""

from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.own_windows import START, Windowed, windowed

KAFKA = {"type": "kafka", "brokers": "b:1", "topic": "t"}
BY = "GROUP BY window(event_time, '2 seconds')"
COUNTS = f"SELECT window.end AS e, count(*) AS n FROM readings {BY}"


def of(sql: str, **query: Any) -> Windowed:
    body = {"sink": KAFKA, "sql": sql, **query}
    stream = {"source": "synthetic", "options": {"rate": 1}, "event_time": "event_time"}
    flow = Flow.model_validate(
        {
            "streams": {"readings": stream, "others": stream},
            "classes": {"default": {"delay": "1s"}},
            "queries": {"q": body},
        }
    )
    return windowed("q", flow.queries["q"], flow)


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
    assert (found.window.length_us, found.window.slide_us) == (length_us, slide_us)
    assert f".start AS {START}" in found.sql
    assert START not in found.columns


@pytest.mark.parametrize(
    ("sql", "query", "reason"),
    [
        ("SELECT * FROM readings", {}, "no GROUP BY window"),
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

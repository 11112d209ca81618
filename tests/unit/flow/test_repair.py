"""Which answers can be computed again window by window, or row by row, and which cannot."""

import pytest

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.repair import repair_of

WINDOW = "window(event_time, '10 seconds')"


def flow_with(sql: str) -> Flow:
    stream = {"source": "synthetic", "event_time": "event_time"}
    return Flow.model_validate(
        {
            "streams": {"bids": stream, "asks": stream},
            "classes": {"all": {"delay": "2s"}},
            "queries": {"q": {"class": "all", "sql": sql}},
        }
    )


@pytest.mark.parametrize(
    ("sql", "period"),
    [
        (f"SELECT {WINDOW} AS period, count(*) AS n FROM bids GROUP BY {WINDOW}", "period"),
        (f"SELECT {WINDOW}, count(*) AS n FROM bids GROUP BY {WINDOW}", "window"),
        (f"SELECT key, count(*) AS n FROM bids GROUP BY {WINDOW}, key", None),
        (
            f"SELECT w, max(n) AS n FROM (SELECT {WINDOW} AS w, key, count(*) AS n FROM bids"
            f" GROUP BY {WINDOW}, key) GROUP BY w",
            "w",
        ),
    ],
)
def test_windows_are_known_by_their_column_and_their_name(sql: str, period: str | None) -> None:
    found = repair_of("q", flow_with(sql))
    assert found.window is not None
    assert (found.window.length_us, found.columns) == (10_000_000, {"bids": "event_time"})
    assert found.period == period


def test_the_arrival_may_be_the_time_of_the_windows() -> None:
    window = "window(_arrival, '10 seconds')"
    found = repair_of(
        "q", flow_with(f"SELECT {window} AS p, count(*) AS n FROM bids GROUP BY {window}")
    )
    assert found.columns == {"bids": "_arrival"}


def test_rows_that_follow_from_one_row_need_no_window() -> None:
    found = repair_of("q", flow_with("SELECT key, 2 * value AS twice FROM bids WHERE value > 0"))
    assert (found.streams, found.window) == (("bids",), None)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT key, count(*) AS n FROM bids GROUP BY key", "do not belong to one time window"),
        ("SELECT DISTINCT key FROM bids", "do not belong to one time window"),
        ("SELECT b.id FROM bids AS b JOIN asks AS a ON b.id = a.id", "do not belong to one"),
        (f"SELECT {WINDOW} AS w, count(*) AS n FROM bids GROUP BY {WINDOW} LIMIT 3", "has LIMIT"),
        (
            "SELECT session_window(event_time, '5 s') AS w, count(*) AS n FROM bids"
            " GROUP BY session_window(event_time, '5 s')",
            "do not belong to one time window",
        ),
        (
            "SELECT count(*) AS n FROM bids GROUP BY window(event_time, '6 seconds', '2 seconds')",
            "select the window",
        ),
        (
            "SELECT window(other, '5 seconds') AS w, count(*) AS n FROM bids"
            " GROUP BY window(other, '5 seconds')",
            "windows over other",
        ),
        (
            f"SELECT a.w, a.n + b.n AS n FROM (SELECT {WINDOW} AS w, count(*) AS n FROM bids GROUP"
            " BY 1) AS a JOIN (SELECT window(event_time, '1 minute') AS w, count(*) AS n FROM asks"
            " GROUP BY 1) AS b ON a.w = b.w",
            "do not belong to one time window",
        ),
    ],
)
def test_what_cannot_be_computed_window_by_window_is_refused(sql: str, expected: str) -> None:
    with pytest.raises(SpillwayError, match=expected) as caught:
        repair_of("q", flow_with(sql))
    assert str(caught.value).startswith("queries.q.sql has ")

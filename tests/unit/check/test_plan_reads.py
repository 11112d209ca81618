"""The plan says what each query reads: partial rows, or tuples and why."""

import pytest

from spillway.check.plan import plan_of
from spillway.flow.flow import Flow

WINDOWED = "SELECT count(*) AS n FROM {0} GROUP BY window(event_time, '1 second')"


def reads(sql: str, **query: object) -> str:
    stream = {"source": "synthetic", "event_time": "event_time"}
    flow = Flow.model_validate(
        {
            "streams": {
                "made": stream,
                "file": {**stream, "source": "replay", "options": {"path": "x.csv"}},
                "hot": {
                    "from_sql": "SELECT * FROM made WHERE value > 0.5",
                    "event_time": "event_time",
                },
            },
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": {"sql": sql, **query}, "hot_too": {"sql": "SELECT * FROM hot"}},
        }
    )
    [plan] = [plan for plan in plan_of(flow).queries if plan.name == "q"]
    return plan.reads


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (WINDOWED.format("made"), "partial rows"),
        (WINDOWED.format("file"), "tuples: stream 'file' declares no columns"),
        (WINDOWED.format("hot"), "tuples or partial rows: its columns are known when it runs"),
        ("SELECT value FROM made", "tuples: it has no aggregate"),
        (
            "SELECT m.value FROM made m JOIN hot ON m.id = hot.id",
            "tuples: it reads several streams",
        ),
    ],
)
def test_it_says_why(sql: str, said: str) -> None:
    assert reads(sql).startswith(said)


def test_it_says_that_a_query_opts_out() -> None:
    assert reads(WINDOWED.format("made"), combine=False) == "tuples: combine is false"

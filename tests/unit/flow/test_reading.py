"""A query's log is asked for the columns that the query reads, and for no others."""

from collections.abc import Mapping

import pytest

from spillway.flow.flow import Flow
from spillway.flow.reading import columns_read

COLUMNS = {
    "auction": "bigint",
    "Bidder": "bigint",
    "price": "double",
    "at": "timestamp",
    "channel": "string",
}


def read(query: Mapping[str, object], **stream: object) -> list[str]:
    flow = Flow.model_validate(
        {
            "streams": {"bids": {"source": "kafka", "columns": COLUMNS, **stream}},
            "classes": {"default": {"delay": "2s"}},
            "queries": {"q": query},
        }
    )
    return list(columns_read(flow, "q", "bids") or ())


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT price FROM bids", ["price"]),
        (
            "SELECT b.bidder, `price` FROM bids b WHERE b.channel = 'x'",
            ["Bidder", "price", "channel"],
        ),
        ("SELECT count(*) FROM bids", ["auction"]),
        ("SELECT * FROM bids", list(COLUMNS)),
        ("SELECT b.* FROM bids b", list(COLUMNS)),
        ("SELECT 1 FROM (SELECT price FROM bids) WHERE price > 1", ["price"]),
        ("SELECT count(*) AS at FROM bids", ["at"]),  # a name is enough
    ],
)
def test_a_column_is_read_where_its_name_stands(sql: str, columns: list[str]) -> None:
    assert read({"sql": sql}) == columns


def test_what_the_gate_looks_at_is_read_too() -> None:
    sql = {"sql": "SELECT price FROM bids"}
    assert read(sql, event_time="at") == ["price", "at"]
    assert read(sql, shedder="key", key="auction") == ["auction", "price"]
    assert read(sql, shedder="utility", utility="Bidder * 2") == ["Bidder", "price"]


def test_templates_and_python_may_read_any_column() -> None:
    template = {"template": "SELECT price FROM bids WHERE price > :x", "instances": [{"x": 1}]}
    assert read(template) == list(COLUMNS)
    assert read({"python": "jobs:large"}) == list(COLUMNS)


def test_logs_with_columns_of_their_own_and_made_up_ones_are_left_alone() -> None:
    assert read({"sql": "SELECT price FROM bids"}, columns=None) == []
    assert read({"sql": "SELECT price FROM bids"}, source="synthetic") == list(COLUMNS)

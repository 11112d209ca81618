"""What a change of a running query says beforehand, and what it refuses."""

from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.hosts.cluster.changing import change_of
from spillway.hosts.cluster.messages import Assignment

BY = "FROM readings GROUP BY window(event_time, '2 seconds')"
BODY = {"sql": f"SELECT count(*) AS n {BY}", "sink": {"type": "kafka", "brokers": "b:1"}}
STREAM = {"source": "synthetic", "options": {"rate": 1}, "event_time": "event_time"}
FLOW = {
    "streams": {"readings": STREAM, "others": STREAM},
    "classes": {"default": {"delay": "1s"}},
}


def said(**changes: Any) -> str:
    return "\n".join(change_of("counts", Assignment(query=BODY), changes, FLOW).said())


def test_it_says_which_columns_come_and_go() -> None:
    found = said(sql=f"SELECT sum(id) AS total {BY}")
    assert "needs the columns total" in found
    assert "columns n come no more" in found


def test_windows_may_become_longer_and_partitions_more() -> None:
    found = said(sql=f"SELECT count(*) AS n {BY}".replace("2 seconds", "1 minute"), partitions=8)
    assert "windows are 2s now and 1m after" in found
    assert "8 partitions" in found
    assert "columns" not in found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sql": BODY["sql"]}, "like that already"),
        ({"sql": "SELECT id FROM readings"}, "cut at different places"),
        ({"sql": "SELECT count(*) AS n FROM readings"}, "no GROUP BY window"),
        ({"sql": f"SELECT count(*) AS n {BY}".replace("readings", "others")}, "would read"),
        ({"sql": "SELECT FROM"}, "cannot be parsed"),
        ({"partitions": 0}, "partitions"),
    ],
)
def test_it_refuses_in_a_line(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpillwayError, match=reason) as refused:
        said(**changes)
    assert "\n" not in str(refused.value)


ROWS = {**BODY, "sql": "SELECT id FROM readings WHERE id > 3"}


def test_rows_change_at_a_position() -> None:
    found = change_of("rows", Assignment(query=ROWS), {"sql": "SELECT id AS n FROM readings"}, FLOW)
    said = "\n".join(found.said())
    assert "a position that neither version has gone beyond" in said
    assert "needs the columns n" in said
    assert "windows" not in said


def test_rows_have_no_partitions_of_a_state() -> None:
    with pytest.raises(SpillwayError, match="no state"):
        change_of("rows", Assignment(query=ROWS), {"partitions": 4}, FLOW)

"""Which queries feed which streams, and what a link is given that the flow does not say."""

from typing import Any

import pytest

from spillway.errors import SpillwayError
from spillway.estimates.flow import check_answers
from spillway.flow.flow import Flow
from spillway.flow.links import all_linked, links_of, readers_of


def flow(sql: str = "SELECT id FROM ticks", **sink: Any) -> Flow:
    kafka = {"type": "kafka", "brokers": "b:1, a:2", "topic": "results", **sink}
    return Flow.model_validate(
        {
            "streams": {
                "ticks": {"source": "synthetic"},
                "results": {
                    "source": "kafka",
                    "options": {"topic": "results", "kafka.bootstrap.servers": "a:2,b:1"},
                    "columns": {"id": "BIGINT"},
                },
                "stored": {"source": "files", "options": {"path": "/tmp/there"}},
            },
            "classes": {"default": {"delay": "2s"}},
            "queries": {
                "first": {"sql": sql, "sink": kafka},
                "second": {
                    "sql": "SELECT id FROM results",
                    "sink": {"type": "parquet", "path": "/tmp/there"},
                },
                "third": {"sql": "SELECT * FROM stored", "sink": {"type": "noop"}},
            },
        }
    )


def test_a_topic_and_a_folder_that_a_query_writes_are_links() -> None:
    found = [(link.writer, link.stream, link.place) for link in links_of(flow())]
    assert found == [("first", "results", "results"), ("second", "stored", "/tmp/there")]
    assert readers_of(flow())["stored"] == ("third",)


def test_a_topic_that_a_stream_reads_is_written_exactly_once() -> None:
    queries = all_linked(flow()).queries
    assert queries["first"].sink.options["exactly_once"] is True
    assert queries["second"].sink.options == {"path": "/tmp/there"}


def test_what_the_flow_says_wins() -> None:
    given = flow(exactly_once=False)
    assert all_linked(given).queries["first"].sink.options["exactly_once"] is False


def test_a_topic_that_nobody_here_reads_is_left_alone() -> None:
    given = flow(topic="elsewhere")
    assert all_linked(given) == given


@pytest.mark.parametrize(
    ("sql", "then"),
    [
        ("SELECT id FROM ticks", "SELECT id, _arrival FROM ticks"),
        ("SELECT * FROM ticks", "SELECT * FROM ticks"),
        ("SELECT count(*) AS n FROM ticks", "SELECT count(*) AS n FROM ticks"),
    ],
)
def test_rows_of_one_row_each_keep_their_first_arrival(sql: str, then: str) -> None:
    assert all_linked(flow(sql)).queries["first"].sql == then


def test_a_link_is_not_read_before_it_is_committed() -> None:
    given = flow().model_dump(by_alias=True)
    given["streams"]["results"]["options"]["kafka.isolation.level"] = "read_uncommitted"
    with pytest.raises(SpillwayError, match=r"streams\.results\.options\.kafka\.isolation\.level"):
        links_of(Flow.model_validate(given))


def test_an_estimate_behind_a_link_is_refused() -> None:
    given = flow().model_dump(by_alias=True)
    given["queries"]["third"] |= {"sql": "SELECT count(*) AS n FROM stored", "estimate": True}
    with pytest.raises(SpillwayError, match=r"queries\.third\.estimate .* query 'second' writes"):
        check_answers(Flow.model_validate(given))


@pytest.mark.parametrize(
    ("sql", "time"),
    [("SELECT id FROM ticks", "record"), ("SELECT count(*) AS id FROM ticks", None)],
)
def test_delays_behind_a_link_count_from_the_first_arrival(sql: str, time: str | None) -> None:
    """Where rows bear it: an aggregate's rows arrive when they are made."""
    streams = all_linked(flow(sql)).streams
    assert streams["results"].options.get("arrival_time") == time
    assert "arrival_time" not in streams["stored"].options  # such a log keeps it by itself


def test_a_stream_whose_time_is_given_keeps_it() -> None:
    given = flow().model_dump(by_alias=True)
    given["streams"]["results"]["options"]["arrival_time"] = "log"
    streams = all_linked(Flow.model_validate(given)).streams
    assert streams["results"].options["arrival_time"] == "log"

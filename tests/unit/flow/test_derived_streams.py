from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spillway.errors import SpillwayError
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow, Sink

CLICKS = {"source": "synthetic", "options": {"rate": 10}}
CLASSES = {
    "gold": {"priority": 6, "delay": "1s"},
    "silver": {"priority": 3, "delay": "2s"},
    "bronze": {"priority": 1, "delay": "4s"},
}


def flow(streams: dict[str, str], queries: dict[str, tuple[str, str]]) -> Flow:
    """Derived streams as name: SQL; queries as name: (class, SQL)."""
    value: dict[str, Any] = {
        "streams": {"clicks": CLICKS, **{n: {"from_sql": sql} for n, sql in streams.items()}},
        "classes": CLASSES,
        "queries": {n: {"class": c, "sql": sql} for n, (c, sql) in queries.items()},
    }
    return Flow.model_validate(value)


HOT = {"hot": "SELECT key, value FROM clicks WHERE value > 0.9"}


def test_a_flow_without_derived_streams_stays_as_it_is() -> None:
    plain = flow({}, {"q": ("gold", "SELECT * FROM clicks")})
    assert expanded(plain, Path("f")) is plain


def test_the_writer_runs_in_the_class_of_the_highest_reader() -> None:
    read = "SELECT * FROM hot"
    made = expanded(flow(HOT, {"a": ("bronze", read), "b": ("silver", read)}), Path("f"))
    assert list(made.queries) == ["hot", "a", "b"]
    assert made.queries["hot"].class_name == "silver"
    assert made.queries["hot"].sink == Sink(type="parquet", path="f/hot")


def test_a_reader_further_down_counts_as_well() -> None:
    streams = {**HOT, "hottest": "SELECT * FROM hot WHERE value > 0.99"}
    queries = {
        "a": ("bronze", "SELECT * FROM hot"),
        "b": ("gold", "SELECT * FROM hottest"),
    }
    made = expanded(flow(streams, queries), Path("f"))
    assert made.queries["hot"].class_name == "gold"


def test_writers_start_after_what_they_read_whatever_the_order_in_the_file() -> None:
    streams = {"c": "SELECT * FROM b", "b": "SELECT * FROM a", "a": "SELECT * FROM clicks"}
    made = expanded(flow(streams, {"q": ("gold", "SELECT * FROM c")}), Path("f"))
    assert list(made.queries) == ["a", "b", "c", "q"]


def test_the_stream_becomes_the_folder_and_keeps_its_other_settings() -> None:
    plain = flow(HOT, {"q": ("gold", "SELECT * FROM hot")}).model_dump(by_alias=True)
    plain["streams"]["hot"] |= {"event_time": "event_time", "policy": "fresh"}
    stream = expanded(Flow.model_validate(plain), Path("f")).streams["hot"]
    assert (stream.source, stream.options["path"], stream.policy) == ("files", "f/hot", "fresh")
    assert stream.event_time == "event_time"


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT key FROM clicks", "SELECT key, _arrival FROM clicks"),
        ("SELECT * FROM clicks", "SELECT * FROM clicks"),
        ("SELECT key, _arrival FROM clicks", "SELECT key, _arrival FROM clicks"),
    ],
)
def test_the_first_arrival_is_kept(sql: str, written: str) -> None:
    made = expanded(flow({"hot": sql}, {"q": ("gold", "SELECT * FROM hot")}), Path("f"))
    assert made.queries["hot"].sql == written


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT key, count(*) FROM clicks GROUP BY key", "GROUP BY"),
        ("SELECT avg(value) FROM clicks", "an aggregate"),
        ("SELECT DISTINCT key FROM clicks", "DISTINCT"),
        ("SELECT a.key FROM clicks a JOIN clicks b ON a.key = b.key", "a join"),
        ("SELECT key FROM (SELECT * FROM clicks)", "a subquery"),
        ("SELECT key FROM clicks LIMIT 3", "LIMIT"),
        ("SELECT key FROM clicks UNION ALL SELECT key FROM clicks", "a set operation"),
    ],
)
def test_only_rows_of_one_stream_are_selected_and_filtered(sql: str, what: str) -> None:
    with pytest.raises(SpillwayError, match=f"streams.hot.from_sql has {what}"):
        expanded(flow({"hot": sql}, {"q": ("gold", "SELECT * FROM hot")}), Path("f"))


def test_a_circle_is_refused_with_its_way_around() -> None:
    streams = {"a": "SELECT * FROM b", "b": "SELECT * FROM a"}
    with pytest.raises(SpillwayError, match="circle: a -> b -> a"):
        expanded(flow(streams, {"q": ("gold", "SELECT * FROM a")}), Path("f"))


def test_an_unknown_stream_is_named_with_the_place() -> None:
    with pytest.raises(SpillwayError, match=r"streams.hot.from_sql .*'click'.*clicks"):
        expanded(
            flow({"hot": "SELECT * FROM click"}, {"q": ("gold", "SELECT * FROM hot")}), Path("f")
        )


def test_a_derived_stream_that_nobody_reads_is_refused() -> None:
    with pytest.raises(SpillwayError, match="'hot' is read by no query"):
        expanded(flow(HOT, {"q": ("gold", "SELECT * FROM clicks")}), Path("f"))


def test_a_query_cannot_have_the_name_of_a_derived_stream() -> None:
    with pytest.raises(SpillwayError, match="'hot' names a query and a derived stream"):
        expanded(flow(HOT, {"hot": ("gold", "SELECT * FROM hot")}), Path("f"))


@pytest.mark.parametrize(
    "stream",
    [{}, {"source": "synthetic", "from_sql": "SELECT 1"}, {"from_sql": "S", "options": {"a": 1}}],
)
def test_a_stream_has_one_origin(stream: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Flow.model_validate(
            {"streams": {"s": stream}, "classes": CLASSES, "queries": {"q": {"sql": "SELECT"}}}
        )

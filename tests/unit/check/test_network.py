"""The network of a flow's queries, as `check` draws it."""

from typing import Any

from spillway.check.network import drawn
from spillway.check.plan import plan_of
from spillway.flow.flow import Flow


def flow(queries: dict[str, tuple[str, str]]) -> Flow:
    """`queries`: name -> (stream, folder that it writes)."""
    folders = {folder for _, folder in queries.values()}
    streams: dict[str, Any] = {
        folder: {"source": "files", "options": {"path": f"/there/{folder}"}} for folder in folders
    }
    return Flow.model_validate(
        {
            "streams": {"ticks": {"source": "synthetic"}, **streams},
            "classes": {"default": {"delay": "2s"}},
            "queries": {
                name: {
                    "sql": f"SELECT * FROM {stream}",
                    "sink": {"type": "parquet", "path": f"/there/{folder}"},
                }
                for name, (stream, folder) in queries.items()
            },
        }
    )


def test_a_tree_has_each_query_below_what_feeds_it() -> None:
    tree = flow({"a": ("ticks", "x"), "b": ("x", "y"), "c": ("x", "z"), "d": ("y", "end")})
    assert drawn(tree) == [
        "a (reads ticks)",
        "   -> b by folder /there/x",
        "      -> d by folder /there/y -> parquet",
        "   -> c by folder /there/x -> parquet",
    ]
    assert plan_of(tree).as_json()["links"][0] == {
        "from": "a",
        "to": "b",
        "stream": "x",
        "place": "/there/x",
    }


def test_nothing_is_drawn_where_no_query_feeds_another() -> None:
    alone = flow({"a": ("ticks", "x")})
    assert drawn(alone) == []
    assert "links" not in plan_of(alone).as_json()


def test_what_several_feed_is_drawn_in_full_once() -> None:
    lines = drawn(
        flow({"a": ("ticks", "x"), "b": ("ticks", "x"), "c": ("x", "y"), "d": ("y", "end")})
    )
    assert [line for line in lines if "d by" in line] == [
        "      -> d by folder /there/y -> parquet"
    ]
    assert "   -> c by folder /there/x, as above" in lines


def test_a_circle_is_drawn_and_ends() -> None:
    lines = drawn(flow({"a": ("y", "x"), "b": ("x", "y")}))
    assert lines == [
        "a (reads y)",
        "   -> b by folder /there/x",
        "      -> a by folder /there/y, as above",
    ]

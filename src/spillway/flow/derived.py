"""Derived streams: rows of one stream, selected once and read by any number of queries.

In the flow that runs, a derived stream is two things: a query that writes it into a folder, in the
class of its highest-priority reader, and a stream over that folder. Lower classes read it through
gates of their own and can only lose what they themselves have no time for.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query, Sink, Stream
from spillway.flow.sql import parse, read_by, streams_of, text_of

Result = TypeVar("Result")

ARRIVAL = "_arrival"
_KEEP = "1h"  # what every query has read
_STATEFUL: Mapping[str, tuple[type[Any], ...]] = {
    "a subquery": (exp.Subquery, exp.CTE, exp.Exists),
    "a join": (exp.Join,),
    "GROUP BY": (exp.Group,),
    "an aggregate": (exp.AggFunc,),
    "a window function": (exp.Window,),
    "DISTINCT": (exp.Distinct,),
    "ORDER BY": (exp.Order,),
    "LIMIT": (exp.Limit,),
}


def expanded(flow: Flow, folder: Path) -> Flow:
    """The flow without derived streams; their writers come first, each after what it reads."""
    names = [name for name, stream in flow.streams.items() if stream.from_sql is not None]
    if not names:
        return flow
    selects = {name: _select(name, flow) for name in names}
    reads = {name: _read_by(name, flow) for name in names}
    readers = {q: set(read_by(q, query, flow)) for q, query in flow.queries.items()}
    writers: dict[str, Query] = {}
    for name in _in_order(reads):
        if name in flow.queries:
            raise SpillwayError(f"'{name}' names a query and a derived stream: rename one of them")
        writers[name] = Query(
            sql=text_of(with_arrival(selects[name])),
            class_name=_class_of(name, flow, reads, readers),
            sink=Sink(type="parquet", path=str(folder / name)),
        )
    streams = {
        name: stream if stream.from_sql is None else _stored(stream, folder / name)
        for name, stream in flow.streams.items()
    }
    return flow.model_copy(update={"streams": streams, "queries": {**writers, **flow.queries}})


def _select(name: str, flow: Flow) -> exp.Select:
    """The parsed SQL, if it looks at one row at a time: only then every row has one arrival."""
    tree = _named(name, lambda: parse(name, flow.streams[name].from_sql or ""))
    found = stateful(tree)
    if found is not None:
        raise SpillwayError(
            f"streams.{name}.from_sql has {found}: a derived stream selects and filters the rows of"
            " one stream (SELECT ... FROM stream WHERE ...); the rest belongs into a query"
        )
    assert isinstance(tree, exp.Select)
    return tree


def stateful(tree: exp.Query) -> str | None:
    """What makes a row of the result depend on more than one row; None: nothing does."""
    found = next((what for what, kinds in _STATEFUL.items() if tree.find(*kinds)), None)
    return found or (None if isinstance(tree, exp.Select) else "a set operation")


def _read_by(name: str, flow: Flow) -> str:
    found = _named(name, lambda: streams_of(name, flow.streams[name].from_sql or "", flow))
    return found[0]  # there is no join, so there is only one


def _named(name: str, ask: Callable[[], Result]) -> Result:
    """SQL is parsed as a query's; an error names the place where this one stands."""
    try:
        return ask()
    except SpillwayError as error:
        said = str(error).replace(f"queries.{name}.sql", f"streams.{name}.from_sql")
        raise SpillwayError(said) from error


def _in_order(reads: Mapping[str, str]) -> list[str]:
    """Every derived stream after the one that it reads."""
    done: list[str] = []
    for name in reads:
        path = list(_upstream(name, reads))
        done += [stream for stream in reversed(path) if stream not in done]
    return done


def _upstream(name: str, reads: Mapping[str, str]) -> Iterator[str]:
    """The derived stream itself, the one it reads, and so on."""
    path: list[str] = []
    while name in reads:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            raise SpillwayError(f"derived streams read each other in a circle: {circle}")
        path.append(name)
        yield name
        name = reads[name]


def _class_of(
    name: str, flow: Flow, reads: Mapping[str, str], readers: Mapping[str, set[str]]
) -> str:
    below = {stream for stream in reads if name in _upstream(stream, reads)}
    classes = {flow.queries[q].class_name for q, streams in readers.items() if streams & below}
    if not classes:
        raise SpillwayError(f"stream '{name}' is read by no query: add a query, or leave it out")
    return min(classes, key=lambda c: (-flow.classes[c].priority, c))


def with_arrival(select: exp.Select) -> exp.Select:
    """Its rows keep the time of their first arrival."""
    has_it = any(e.is_star or e.alias_or_name == ARRIVAL for e in select.expressions)
    return select if has_it else select.select(ARRIVAL)


def _stored(stream: Stream, path: Path) -> Stream:
    options = {"path": str(path), "startingOffsets": "earliest"}
    keep = stream.keep or _KEEP
    update = {"source": "files", "from_sql": None, "options": options, "keep": keep}
    return stream.model_copy(update=update)

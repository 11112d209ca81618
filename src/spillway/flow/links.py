"""Links: a query's results are another query's stream, through a topic or a folder. Pure.

The two ends may be on different nodes. A topic is written exactly once where nothing else was said,
because a reader cannot recognise what comes twice; rows of a query that looks at one row at a time
take the time of their first arrival along.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.derived import stateful, with_arrival
from spillway.flow.flow import Flow, Query, Sink, Stream
from spillway.flow.sql import parse, streams_of, text_of

_UNCOMMITTED = "read_uncommitted"
_ISOLATION = "kafka.isolation.level"
_ARRIVAL_TIME = "arrival_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    writer: str  # the query whose results it carries
    stream: str
    place: str  # the topic or the folder


def links_of(flow: Flow) -> tuple[Link, ...]:
    """In the order of the queries; raises for a reader that would see what is taken back."""
    found = [
        Link(writer=name, stream=stream_name, place=place[-1])
        for name, query in flow.queries.items()
        if (place := _written(query.sink)) is not None
        for stream_name, stream in flow.streams.items()
        if _read(stream) == place
    ]
    for link in found:
        if flow.streams[link.stream].options.get(_ISOLATION) == _UNCOMMITTED:
            raise SpillwayError(
                f"streams.{link.stream}.options.{_ISOLATION} is {_UNCOMMITTED}, and query"
                f" '{link.writer}' writes the topic: a link is read as read_committed; leave it out"
            )
    return tuple(found)


def readers_of(flow: Flow) -> Mapping[str, tuple[str, ...]]:
    """Stream -> the queries that read it."""
    reads = {name: streams_of(name, query.text, flow) for name, query in flow.queries.items()}
    return {
        stream: tuple(name for name, streams in reads.items() if stream in streams)
        for stream in flow.streams
    }


def all_linked(flow: Flow) -> Flow:
    queries = {name: linked(name, query, flow) for name, query in flow.queries.items()}
    streams = {name: _timed(stream, flow) for name, stream in flow.streams.items()}
    return flow.model_copy(update={"queries": queries, "streams": streams})


def _timed(stream: Stream, flow: Flow) -> Stream:
    """Where every row of a topic bears the time of its first arrival, delays count from there."""
    place = _read(stream)
    writers = (
        [] if place is None else [i for i in flow.queries.items() if _written(i[1].sink) == place]
    )
    if stream.source != "kafka" or not writers or not all(_passes(*one) for one in writers):
        return stream
    return stream.model_copy(update={"options": {_ARRIVAL_TIME: "record", **stream.options}})


def linked(name: str, query: Query, flow: Flow) -> Query:
    """The query as its sink is to run it: what a link needs, where the flow does not say it."""
    place = _written(query.sink)
    is_link = place is not None and any(_read(stream) == place for stream in flow.streams.values())
    if query.sink.type != "kafka" or not is_link:
        return query
    given = {"exactly_once": True, **query.sink.options}
    sink = Sink(type="kafka", **given)
    return query.model_copy(update={"sink": sink, "sql": _with_arrival(name, query)})


def _with_arrival(name: str, query: Query) -> str | None:
    tree = _row_wise(name, query)
    return query.sql if tree is None else text_of(with_arrival(tree))


def _passes(name: str, query: Query) -> bool:
    """Whether its rows bear the time of their first arrival."""
    return _row_wise(name, query) is not None


def _row_wise(name: str, query: Query) -> exp.Select | None:
    if query.sql is None or query.estimate:
        return None
    tree = parse(name, query.sql)
    return tree if isinstance(tree, exp.Select) and stateful(tree) is None else None


def _written(sink: Sink) -> tuple[str, ...] | None:
    given = {key: str(value) for key, value in sink.options.items()}
    if sink.type == "kafka" and {"brokers", "topic"} <= given.keys():
        return "kafka", _servers(given["brokers"]), given["topic"]
    if sink.type == "parquet" and "path" in given:
        return "files", given["path"]
    return None


def _read(stream: Stream) -> tuple[str, ...] | None:
    given = {key: str(value) for key, value in stream.options.items()}
    if stream.source == "kafka" and {"kafka.bootstrap.servers", "topic"} <= given.keys():
        return "kafka", _servers(given["kafka.bootstrap.servers"]), given["topic"]
    if stream.source == "files" and "path" in given:
        return "files", given["path"]
    return None


def _servers(text: str) -> str:
    """However they are listed."""
    return ",".join(sorted(server.strip() for server in text.split(",")))

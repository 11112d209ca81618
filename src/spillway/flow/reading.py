"""Which of a stream's declared columns a query reads: the others are never decoded.

What a query does not read it does not judge: a record whose unread field has the wrong type is a
row, as one is with a field that the stream does not declare.
"""

from collections.abc import Mapping

from sqlglot import exp

from spillway.flow.flow import Flow, Query, Stream
from spillway.flow.shedders import selection_of
from spillway.flow.sql import parse
from spillway.logs.catalog import STARTED


def columns_read(flow: Flow, name: str, stream_name: str) -> Mapping[str, str] | None:
    """Their types by name, in the stream's order; None: the log's own columns."""
    query, stream = flow.queries[name], flow.streams[stream_name]
    if stream.columns is None or stream.source in STARTED:
        return stream.columns  # made-up values cost nothing where nobody looks at them
    named = None if query.sql is None else _named(name, query)
    if named is None:
        return stream.columns
    wanted = named | {column.lower() for column in _of_gate(stream)}
    read = {column: kind for column, kind in stream.columns.items() if column.lower() in wanted}
    return read or dict([next(iter(stream.columns.items()))])  # rows have to be counted


def _of_gate(stream: Stream) -> set[str]:
    """What the gate itself looks at."""
    selection = selection_of(stream)
    own = {stream.event_time} if stream.event_time is not None else set()
    return own | set(selection.columns if selection is not None else ())


def _named(name: str, query: Query) -> set[str] | None:
    """Every name in the query's text, whatever it stands for; None: it may read any column."""
    tree = parse(name, query.text)
    stars = [star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    natural = any(join.method == "NATURAL" for join in tree.find_all(exp.Join))
    if stars or natural:
        return None
    return {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}

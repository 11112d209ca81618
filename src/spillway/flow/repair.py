"""What of a query's answer can be computed again when tuples were shed: windows, or single rows.

A result row must follow from the rows of one window, or from one row. Then the windows that lost
something can be computed from all their rows, and nothing else changes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.derived import ARRIVAL, stateful
from spillway.flow.flow import Flow
from spillway.flow.sql import TIME_WINDOW, parse, streams_of
from spillway.flow.time_windows import TimeWindow, is_time_window, time_window

_NEVER: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "a window function": (exp.Window,),
    "LIMIT": (exp.Limit,),
    "EXISTS": (exp.Exists,),
}


@dataclass(frozen=True, kw_only=True)
class Repair:
    """`window` None: every shed row alone gives the rows that are missing."""

    streams: tuple[str, ...]
    window: TimeWindow | None
    columns: Mapping[str, str]  # by stream: the times that its windows are of
    period: str | None  # the column of the result that holds the window


def repair_of(name: str, flow: Flow) -> Repair:
    """Raises where a row of the result may follow from rows of several windows."""
    query = flow.queries[name]
    if query.template is not None:
        raise SpillwayError(
            f"queries.{name} is a template: backfill works on one query; write the instance's SQL"
            " as a query of its own"
        )
    if query.python is not None:
        raise SpillwayError(
            f"queries.{name} is Python: what a row of its result follows from can be told for sql"
            " only"
        )
    tree, streams = parse(name, query.text), streams_of(name, query.text, flow)
    nodes = list(filter(is_time_window, tree.find_all(exp.Anonymous)))
    if not nodes and stateful(tree) is None:
        return Repair(streams=streams, window=None, columns={}, period=None)
    windows = {time_window(node) for node in nodes}
    sizes = {(w.length_us, w.slide_us, w.start_us) for w in windows if w is not None}
    never = next((what for what, kinds in _NEVER.items() if tree.find(*kinds)), None)
    if never is not None or None in windows or len(sizes) != 1 or not _by_window(tree):
        reason = never or "results that do not belong to one time window"
        raise SpillwayError(
            f"queries.{name}.sql has {reason}: backfill computes time windows of one length again,"
            " window(column, '10 seconds'), by which everything is grouped and joined, or single"
            " rows"
        )
    columns = {stream: _column(name, stream, flow, windows) for stream in streams}
    window = next(w for w in windows if w is not None)
    period = _period(tree)
    if not window.tumbling and period is None:
        raise SpillwayError(
            f"queries.{name}.sql has sliding windows, and its result does not say which: select the"
            " window, window(...) AS period"
        )
    return Repair(streams=streams, window=window, columns=columns, period=period)


def _column(name: str, stream: str, flow: Flow, windows: set[TimeWindow | None]) -> str:
    used = {window.column for window in windows if window is not None}
    known = dict.fromkeys((flow.streams[stream].event_time, ARRIVAL))
    found = [column for column in known if column in used]
    event_times = {given.event_time for given in flow.streams.values()}
    if len(found) != 1 or found[0] is None or used - event_times - {ARRIVAL}:
        raise SpillwayError(
            f"queries.{name}.sql has windows over {', '.join(sorted(used))}: backfill needs them"
            f" over the event time of stream '{stream}'"
        )
    return found[0]


def _by_window(tree: exp.Query) -> bool:
    """Whether every grouping has a window among its keys, and every join matches windows."""
    names = _periods(tree)
    groups, joins = list(tree.find_all(exp.Group)), list(tree.find_all(exp.Join))
    ungrouped = [s for s in tree.find_all(exp.Select) if not s.args.get("group")]
    return (
        bool(groups)
        and all(any(_is_period(key, names) for key in group.expressions) for group in groups)
        and all(any(_matches(eq, names) for eq in _conditions(join)) for join in joins)
        and not any(_aggregates(select) or select.args.get("distinct") for select in ungrouped)
    )


def _periods(tree: exp.Query) -> set[str]:
    """What windows are called."""
    found = {a.alias.lower() for a in tree.find_all(exp.Alias) if is_time_window(a.this)}
    while True:
        of_those = (a for a in tree.find_all(exp.Alias) if isinstance(a.this, exp.Column))
        more = {a.alias.lower() for a in of_those if a.this.name.lower() in found} - found
        if not more:
            return found | {"window"}
        found |= more


def _is_period(node: exp.Expr, names: set[str]) -> bool:
    return is_time_window(node) or (isinstance(node, exp.Column) and node.name.lower() in names)


def _conditions(join: exp.Join) -> Iterator[exp.Expr]:
    on = join.args.get("on")
    if on is not None:
        yield from on.flatten() if isinstance(on, exp.And) else [on]


def _matches(condition: exp.Expr, names: set[str]) -> bool:
    return isinstance(condition, exp.EQ) and all(
        _is_period(side, names) for side in (condition.this, condition.expression)
    )


def _aggregates(select: exp.Select) -> bool:
    return any(item.find(exp.AggFunc) for item in select.expressions)


def _period(tree: exp.Query) -> str | None:
    names = _periods(tree)
    for item in tree.selects:
        if _is_period(item.unalias(), names):
            return "window" if item.alias_or_name == TIME_WINDOW else item.alias_or_name or None
    return None

"""Queries over streams that shed whole windows: only results of windows that are complete.

The gate keeps or drops whole stretches of event time, [n B, (n + 1) B). A query's window inside one
stretch is complete wherever it has a row at all. A window that reaches over several of them, as
sliding windows do, is complete when all of those stayed: a row in the last of them says since when
all did (`_kept_from`). Results of other windows, and of those that have no row there to tell, are
left out, so that the result stays a subset of the true one.
"""

from collections.abc import Iterator

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.sql import parse, text_of
from spillway.flow.time_windows import (
    TimeWindow,
    is_time_window,
    shown,
    time_window,
    time_windows,
)
from spillway.gate.shedders.shedder import WholeWindows

KEPT_FROM = "_kept_from"


def with_whole_windows(name: str, sql: str, stream: str, whole: WholeWindows) -> str:
    """The query without the results of incomplete windows; raises where they cannot be told."""
    tree, changed = parse(name, sql), False
    for select in _over(tree, stream):
        if select.args.get("group") is None and not select.find(exp.AggFunc):
            continue
        window = _window(name, select, whole)
        if select.args.get("joins"):
            raise _refused(name, whole, "no result of a join over other streams is complete")
        if inside_one(window, whole):
            continue
        if select.parent is not None:
            why = "a query around sliding windows would compute with groups that are left out"
            raise _refused(name, whole, why)
        select.having(_complete(window, whole.length_us), copy=False)
        changed = True
    return text_of(tree) if changed else sql


def reaches_over(sql: str, whole: WholeWindows) -> bool:
    """Has the query windows for which the gate must say since when everything stayed?"""
    found = (w for w in time_windows(parse("", sql)) if w.column == whole.column)
    return any(not inside_one(window, whole) for window in found)


def inside_one(window: TimeWindow, whole: WholeWindows) -> bool:
    """Does each such window lie in one stretch that the gate keeps or drops?"""
    fits = whole.length_us % window.length_us == 0
    return window.tumbling and fits and window.start_us % window.length_us == 0


def _over(tree: exp.Expr, stream: str) -> Iterator[exp.Select]:
    """The SELECTs that read the stream itself."""
    for select in tree.find_all(exp.Select):
        start = select.args.get("from_") or select.args.get("from")
        read = [start, *(select.args.get("joins") or [])] if start else []
        if any(isinstance(r.this, exp.Table) and r.this.name == stream for r in read):
            yield select


def _window(name: str, select: exp.Select, whole: WholeWindows) -> TimeWindow:
    group = select.args.get("group")
    aliases = {e.alias: e.this for e in select.expressions if isinstance(e, exp.Alias)}
    for key in group.expressions if group else ():
        written = aliases.get(key.name, key) if isinstance(key, exp.Column) else key
        found = time_window(written) if is_time_window(written) else None
        if found is None or found.column != whole.column:
            continue
        if found.length_us > whole.length_us:
            length = shown(found.length_us)
            why = f"no window of {length} fits into that; make it several times {length}"
            raise _refused(name, whole, why)
        return found
    why = f"an aggregate needs GROUP BY window({whole.column}, ...) with literal durations"
    raise _refused(name, whole, why)


def _complete(window: TimeWindow, length_us: int) -> str:
    last = f"(unix_micros(window.end) - 1) DIV {length_us}"
    newest = f"unix_micros(max({window.column})) DIV {length_us}"
    return (
        f"unix_micros(window.start) DIV {length_us} = {last}"
        f" OR ({newest} = {last} AND max_by({KEPT_FROM}, {window.column}) <= window.start)"
    )


def _refused(name: str, whole: WholeWindows, why: str) -> SpillwayError:
    length = shown(whole.length_us)
    return SpillwayError(
        f"queries.{name} cannot read a stream that sheds whole windows of {length}: {why}"
    )

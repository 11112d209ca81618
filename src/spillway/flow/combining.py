"""A query whose tuples become partial rows in the reader, and its text over those.

Spark's own aggregation goes on as it is: `count(*)` becomes the sum of the counts of partial rows,
`avg(x)` the sum of their totals over the sum of their counts, and so on, in the same windows under
the same watermark. What a result says besides aggregates is computed from keys, as before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

import sqlglot
from pyspark.sql import types
from pyspark.sql.types import DataType, StructType
from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.conditions import SCALAR, conditions_of
from spillway.flow.flow import Flow, Query
from spillway.flow.sql import parse, streams_of, text_of
from spillway.flow.time_windows import TimeWindow, is_time_window, time_window
from spillway.gate.combination import MATCHES, WEIGHT, Combination, Function, Partial

_NUMBERS = (
    *(types.ByteType, types.ShortType, types.IntegerType, types.LongType),
    *(types.FloatType, types.DoubleType),
)
_TIMES = (types.TimestampType, types.TimestampNTZType)
_PLAIN = (*_NUMBERS, *_TIMES, types.BooleanType, types.DateType)
_MERGED = {"count": "COALESCE(SUM({0}), CAST(0 AS BIGINT))"} | {
    function: f"{name}({{0}})"
    for function, name in (("sum", "SUM"), ("min", "MIN"), ("max", "MAX"))
}
_AVERAGE = "SUM({0}) / NULLIF(SUM({1}), 0)"
_FUNCTIONS: Mapping[type[exp.Expr], Function] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
}
_REFUSED = {"with_": "WITH", "distinct": "DISTINCT", "joins": "a join", "laterals": "LATERAL VIEW"}


@dataclass(frozen=True, kw_only=True)
class Combined:
    sql: str  # over partial rows
    combination: Combination


def require_one_stream(name: str, query: Query, flow: Flow) -> None:
    """Raise with the reason where no query of this kind is computed in parts."""
    if query.sql is None:
        raise _cannot("a template's instances share one plan" if query.template else "it is Python")
    if query.estimate:
        raise _cannot("bounds of estimates need every tuple")
    names = streams_of(name, query.sql, flow)
    if len(names) > 1:
        raise _cannot(f"it reads several streams ({', '.join(names)})")
    if flow.streams[names[0]].event_time is None:
        raise _cannot(f"stream '{names[0]}' has no event_time")


def combined(name: str, sql: str, flow: Flow, columns: StructType) -> Combined:
    """Raises with the reason where the query's tuples reach Spark one by one. `sql` is its text,
    or what has been made of it; `columns` are the stream's, and those that the gate adds."""
    [stream] = streams_of(name, sql, flow)
    return _Combining(parse(name, sql), flow.streams[stream].event_time or "", columns).combined()


def _cannot(why: str) -> SpillwayError:
    return SpillwayError(why)


class _Combining:
    def __init__(self, tree: exp.Query, time: str, columns: StructType) -> None:
        self._tree = _plain_select(tree)
        self._columns = columns
        self._names = {field.name.lower(): field.name for field in columns}
        self._time = self._names.get(time.lower(), time)
        self._partials: dict[str, Partial] = {}

    def combined(self) -> Combined:
        if self._tree.find(exp.AggFunc) is None:
            raise _cannot("it has no aggregate")
        window = self._window()
        for projection in self._tree.expressions:
            _name(projection)
        where = self._tree.args.get("where")
        merged = [(a, self._merged(a)) for a in list(_outermost(self._tree, exp.AggFunc))]
        keys = tuple(dict.fromkeys(self._keys(where)))
        conditions, left = conditions_of(where, keys, self._column, self._kind)
        for made in (*self._partials, MATCHES):
            if made.lower() in self._names or "`" in made:
                raise _cannot(f"its stream has a column '{made}'")
        for aggregate, text in merged:
            aggregate.replace(sqlglot.parse_one(text, read="spark"))
        if conditions:
            self._tree.set("where", None)
            for condition in (*left, exp.column(MATCHES)):
                self._tree.where(condition, copy=False)
        combination = Combination(
            time=self._time,
            pane_us=gcd(window.length_us, window.slide_us),
            start_us=window.start_us,
            keys=keys,
            partials=tuple(self._partials.values()),
            conditions=conditions,
            rows=self._columns.json(),
        )
        return Combined(sql=text_of(self._tree), combination=combination)

    def _window(self) -> TimeWindow:
        kind = self._kind(self._time)
        found = {node.sql(): node for node in self._tree.find_all(exp.Anonymous)}
        written = [node for node in found.values() if is_time_window(node)]
        windows = {time_window(node) for node in written}
        if len(windows) != 1 or None in windows or not isinstance(kind, _TIMES):
            raise _cannot(f"it has no GROUP BY window({self._time}, ...) with literal durations")
        [window] = windows
        assert window is not None
        if window.column.lower() != self._time.lower():
            raise _cannot(f"its windows are over '{window.column}', which has no watermark")
        if min(window.length_us, window.slide_us) <= 0:
            raise _cannot("a window of no length")
        return window

    def _merged(self, aggregate: exp.Expr) -> str:
        """What Spark computes from partial rows instead."""
        argument, said = aggregate.this, text_of(aggregate)
        around = aggregate.parent
        if isinstance(around, exp.Filter | exp.Window | exp.IgnoreNulls):
            raise _cannot(f"{said} has a clause of its own")
        merges = isinstance(aggregate, (exp.Avg, *_FUNCTIONS))
        if aggregate.args.get("expressions") or not merges:
            raise _cannot(f"{said} cannot be merged from parts")
        constant = isinstance(argument, exp.Literal) and isinstance(aggregate, exp.Count)
        if isinstance(argument, exp.Star) or constant:
            return _MERGED["count"].format(self._partial("count", None))
        column, weighted = self._argument(argument, aggregate)
        if column is None:
            raise _cannot(f"{said} is over more than a column")
        if weighted:
            self._require(column, _NUMBERS, said)
            return _MERGED["sum"].format(self._partial("weighted", column))
        if isinstance(aggregate, exp.Avg):
            self._require(column, _NUMBERS, said)
            parts = self._partial("total", column), self._partial("count", column)
            return f"({_AVERAGE.format(*parts)})"
        function = _FUNCTIONS[type(aggregate)]
        if function != "count":
            self._require(column, _NUMBERS if function == "sum" else _PLAIN, said)
        return _MERGED[function].format(self._partial(function, column))

    def _argument(self, argument: exp.Expr, aggregate: exp.Expr) -> tuple[str | None, bool]:
        """The column, and whether its values are multiplied by their weights."""
        if isinstance(argument, exp.Column):
            return self._column(argument), False
        if isinstance(argument, exp.Mul) and isinstance(aggregate, exp.Sum):
            sides = [argument.left, argument.right]
            found = [self._column(s) if isinstance(s, exp.Column) else None for s in sides]
            if WEIGHT in found and None not in found:
                return found[found[0] == WEIGHT], True
        return None, False

    def _partial(self, function: Function, column: str | None) -> str:
        of = "" if column is None else f"_{column}"
        name = f"_{function}{of}"
        self._partials[name] = Partial(name=name, function=function, column=column)
        return f"`{name}`"

    def _require(self, column: str, kinds: tuple[type[DataType], ...], said: str) -> None:
        kind = self._kind(column)
        text = kind == types.StringType() and _PLAIN is kinds
        if kind is not None and not (text or isinstance(kind, kinds)):
            raise _cannot(f"{said} is over {kind.simpleString()}")

    def _keys(self, where: exp.Expr | None) -> Iterator[str]:
        """The columns that are looked at outside of aggregates, windows and WHERE."""
        for part, node in self._tree.args.items():
            for inner in node if isinstance(node, list) else [node]:
                if isinstance(inner, exp.Expr) and part not in ("where", "from_", "from"):
                    yield from self._keys_in(inner)

    def _keys_in(self, node: exp.Expr) -> Iterator[str]:
        if isinstance(node, exp.AggFunc) or is_time_window(node):
            return
        if isinstance(node, exp.Column):
            column = self._column(node)
            if column is None:
                return  # a window's, or a name that the query gives
            if column == self._time:
                raise _cannot(f"it looks at {column} outside of its windows")
            self._require(column, _PLAIN, text_of(node))
            yield column
            return
        if not isinstance(node, (*SCALAR, exp.Group, exp.Having, exp.Order, exp.Limit)):
            raise _cannot(f"what {text_of(node)} gives may depend on every tuple")
        if isinstance(node, exp.Group):
            _require_plain(node)
        for inner in node.iter_expressions():
            yield from self._keys_in(inner)

    def _column(self, node: exp.Column) -> str | None:
        """The stream's column that is meant; None for `window.start` and names of the query's."""
        first = node.parts[0].name.lower()
        table = self._tree.args.get("from_") or self._tree.args["from"]
        if len(node.parts) == 2 and first == table.this.alias_or_name.lower():
            first = node.parts[1].name.lower()
        elif len(node.parts) > 1 and first in self._names:
            raise _cannot(f"it looks into {node.sql('spark')}")
        return self._names.get(first)

    def _kind(self, column: str) -> DataType | None:
        return self._columns[column].dataType if column in self._columns.names else None


def _plain_select(tree: exp.Query) -> exp.Select:
    if not isinstance(tree, exp.Select):
        raise _cannot("it is not one SELECT")
    for part, what in _REFUSED.items():
        if tree.args.get(part):
            raise _cannot(f"it has {what}")
    if len(list(tree.find_all(exp.Query))) > 1:
        raise _cannot("it has a query inside")
    if tree.find(exp.Window):
        raise _cannot("it has OVER")
    table = (tree.args.get("from_") or tree.args["from"]).this
    if set(filter(table.args.get, table.args)) - {"this", "alias"} or table.alias_column_names:
        raise _cannot("it reads more than a stream as it is")
    return tree


def _require_plain(group: exp.Group) -> None:
    if {part for part, given in group.args.items() if given} != {"expressions"}:
        raise _cannot("its GROUP BY has more than columns and a window")
    if any(isinstance(key, exp.Literal) for key in group.expressions):
        raise _cannot("its GROUP BY counts columns: name them")


def _outermost(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    if isinstance(node, kind):
        yield node
        return
    for inner in node.iter_expressions():
        yield from _outermost(inner, kind)


def _name(projection: exp.Expr) -> None:
    """Gives an aggregate the name that Spark would give it."""
    if isinstance(projection, exp.Alias | exp.Column | exp.Dot) or is_time_window(projection):
        return
    argument = projection.this
    known = isinstance(argument, exp.Column | exp.Star | exp.Literal)
    if not (known and isinstance(projection, exp.AggFunc)):
        raise _cannot(f"{text_of(projection)} has no name: add AS some_name")
    written = "1" if isinstance(argument, exp.Star) else argument.name
    projection.replace(exp.alias_(projection.copy(), f"{projection.key}({written})", quoted=True))

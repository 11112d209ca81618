"""Types that Spark is sure to refuse, in a tree whose types are annotated."""

from collections.abc import Iterator

from sqlglot import exp

from spillway.errors import shown
from spillway.flow.time_windows import interval_us, is_time_window, time_window

_PLAIN = (exp.Alias, exp.Paren, exp.Column, exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.Div)
_SEVERAL = (exp.Literal, exp.Star, exp.Tuple, exp.Cube, exp.Rollup, exp.GroupingSets)
_T = exp.DataType.Type
_NUMBERS = {
    *(_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.FLOAT, _T.DOUBLE, _T.DECIMAL),
}
_TIMES = {_T.DATE, _T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ, _T.TIMESTAMPNTZ}
_SCALARS = _NUMBERS | _TIMES | {_T.BOOLEAN, _T.TEXT, _T.VARCHAR, _T.CHAR}
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_NO_NUMBERS = {_T.BOOLEAN, _T.BINARY, _T.ARRAY, _T.MAP, _T.STRUCT, *_TIMES}


def misfits(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """(where, what is wrong)."""
    for node in tree.walk():
        if isinstance(node, exp.Sum | exp.Avg) and _kind(node.this) in _NO_NUMBERS:
            yield node.this, f"{node.key} of {_shown(node.this)}: it takes numbers"
        elif isinstance(node, exp.Mul | exp.Div | exp.Mod):
            for side in (node.left, node.right):
                if _kind(side) in _NO_NUMBERS:
                    yield side, f"{_shown(side)} in {node.key}: it takes numbers"
        elif is_time_window(node) and node.expressions:
            yield from _of_window(node)
        elif isinstance(node, exp.Window):
            said = "a stream never has all rows of a window over rows: group by window(time, '1m')"
            yield node, f"{shown(node.sql('spark'))}: {said}"
        elif isinstance(node, _COMPARED):
            yield from _of_comparison(node)
        elif isinstance(node, exp.Bracket) and _kind(node.this) in _SCALARS:
            yield node.this, f"{_shown(node.this)}: it has no elements"
        elif isinstance(node, exp.Where) and (found := _aggregate_in(node)) is not None:
            yield found, f"{shown(found.sql('spark'))} in WHERE: an aggregate belongs into HAVING"
        elif isinstance(node, exp.Where) and _kind(node.this) in _SCALARS - {_T.BOOLEAN}:
            yield node.this, f"WHERE {_shown(node.this)}: compare it with something"
        elif isinstance(node, exp.Having) and _is_alone(node):
            yield node, "HAVING without GROUP BY: write WHERE"
        elif isinstance(node, exp.Select):
            yield from _ungrouped(node)


def _ungrouped(select: exp.Select) -> Iterator[tuple[exp.Expr, str]]:
    """Columns beside an aggregate that are no part of a group."""
    group = select.args.get("group")
    keys = list(group.expressions) if group is not None else []
    plain = group is None or not any(v for k, v in group.args.items() if k != "expressions")
    if not plain or any(isinstance(key, _SEVERAL) for key in keys):
        return
    counted = any(_own(select, found) for e in select.expressions for found in _aggregates(e))
    if not counted and group is None:
        return
    texts = {_text(key) for key in keys} | {key.name.lower() for key in keys if key.name}
    for expression in select.expressions:
        if expression.alias.lower() in texts:
            continue
        for column in expression.find_all(exp.Column):
            if not isinstance(column.this, exp.Star) and _is_bare(column, expression, texts):
                name = shown(column.name)
                said = f"column '{name}' is neither in GROUP BY nor in an aggregate"
                yield column, f"{said}: add it there, or write any_value({name})"


def _is_bare(column: exp.Column, top: exp.Expr, texts: set[str]) -> bool:
    """Nothing around it but arithmetic, and nothing of it is a key of the group."""
    if any(part.name.lower() in texts for part in column.parts):
        return False
    node: exp.Expr | None = column
    while node is not None:
        if _text(node) in texts or not isinstance(node, _PLAIN):
            return False
        if node is top:
            return column.parts[0].name.lower() not in ("window", "session_window")
        node = node.parent
    return False


def _aggregates(expression: exp.Expr) -> Iterator[exp.Expr]:
    return expression.find_all(exp.AggFunc)


def _own(select: exp.Select, found: exp.Expr) -> bool:
    return found.find_ancestor(exp.Select) is select and found.find_ancestor(exp.Window) is None


def _text(node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Alias) else node
    return inner.name.lower() if isinstance(inner, exp.Column) else inner.sql("spark").lower()


def _of_window(window: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    time, *durations = window.expressions
    if _kind(time) in _NUMBERS | {_T.BOOLEAN, _T.BINARY}:
        yield time, f"window over {_shown(time)}: it takes a timestamp"
    for duration in durations:
        is_text = isinstance(duration, exp.Literal) and duration.is_string  # a number: microseconds
        if is_text and not interval_us(duration.name):
            said = "it takes a duration, such as '10 seconds' or '1 hour'"
            yield duration, f"window of {shown(duration.sql('spark'))}: {said}"
    found = time_window(window)
    if found is not None and found.slide_us > found.length_us:
        yield window, "window(...) with a slide that is longer than the window"


def _of_comparison(node: exp.Binary) -> Iterator[tuple[exp.Expr, str]]:
    """Of a number with a text that is none: the first row would end the query."""
    for number, text in ((node.left, node.right), (node.right, node.left)):
        if _kind(number) in _NUMBERS and isinstance(text, exp.Literal) and text.is_string:
            try:
                float(text.name)
            except ValueError:
                yield number, f"{_shown(number)} against '{shown(text.name)}': that is no number"


def _is_alone(having: exp.Having) -> bool:
    select = having.parent
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return False
    return not any(_own(select, found) for found in _aggregates(select))


def _aggregate_in(where: exp.Where) -> exp.AggFunc | None:
    """Of the WHERE itself: a query inside it has aggregates of its own."""
    select = where.parent
    for found in where.find_all(exp.AggFunc):
        if isinstance(select, exp.Select) and _own(select, found):
            return found
    return None


def _kind(node: exp.Expr) -> object:
    """Of a column as it is; what sqlglot makes of other expressions is not taken for sure."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node.type.this if isinstance(node, exp.Column) and node.type is not None else None


def _shown(node: exp.Expr) -> str:
    kind = node.type.sql("spark").lower() if node.type is not None else "unknown"
    return f"'{shown(node.sql('spark'))}', which is {kind}"

"""Types that Spark is sure to refuse, in a tree whose types are annotated."""

from collections.abc import Iterator

from sqlglot import exp

from spillway.errors import shown
from spillway.flow.time_windows import is_time_window

_T = exp.DataType.Type
_NUMBERS = {
    *(_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.FLOAT, _T.DOUBLE, _T.DECIMAL),
}
_TIMES = {_T.DATE, _T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ, _T.TIMESTAMPNTZ}
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
            yield from _of_window(node.expressions[0])
        elif isinstance(node, exp.Where) and (found := _aggregate_in(node)) is not None:
            yield found, f"{shown(found.sql('spark'))} in WHERE: an aggregate belongs into HAVING"


def _of_window(time: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    if _kind(time) in _NUMBERS | {_T.BOOLEAN, _T.BINARY}:
        yield time, f"window over {_shown(time)}: it takes a timestamp"


def _aggregate_in(where: exp.Where) -> exp.AggFunc | None:
    """Of the WHERE itself: a query inside it has aggregates of its own."""
    select = where.parent
    for found in where.find_all(exp.AggFunc):
        if found.find_ancestor(exp.Select) is select and found.find_ancestor(exp.Window) is None:
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

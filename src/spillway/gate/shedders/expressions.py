"""Utility expressions: a small part of SQL over the columns of an Arrow batch.

Numbers, columns, + - * / %, comparisons, AND OR NOT, and the functions below. Workers evaluate
them, so nothing heavier than NumPy is needed.
"""

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.errors import SpillwayError, shown, unknown_name

Values = Any  # a number or an array of them

_MOST_TEXT = 10_000
_MOST_DEPTH = 64
_MOST_NUMBER = 1e300

_STRING = re.compile(r"('(?:[^']|'')*')")
_WORDS = re.compile(r"\b(AND|OR|NOT|IF)\b", re.IGNORECASE)
_EQUAL = re.compile(r"(?<![<>!=])=(?!=)")


def evaluate(text: str, rows: Any) -> npt.NDArray[np.float64]:
    """The expression's value for every row; NaN where a column is null."""
    columns = {name: _floats(rows.column(name)) for name in columns_of(text)}
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(_value(_parsed(text), columns, text), dtype=np.float64)
    except (TypeError, ValueError):  # a text among numbers
        raise _refused(text, "what a text stands for among numbers") from None
    return np.broadcast_to(value, (rows.num_rows,))


def columns_of(text: str) -> tuple[str, ...]:
    """The columns that an expression reads; raises when it is none."""
    tree = _parsed(text)
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in calls)
    return tuple(sorted({node.id for node in names}))


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_TEXT:
        raise _refused(text, f"what has {len(text)} characters")
    parts = _STRING.split(text)
    for i in range(0, len(parts), 2):
        plain = _EQUAL.sub("==", parts[i].replace("<>", "!="))
        plain = _WORDS.sub(lambda m: m[0].lower().replace("if", "if_"), plain)
        parts[i] = plain
    for i in range(1, len(parts), 2):
        parts[i] = repr(parts[i][1:-1].replace("''", "'"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own advice on what is no Python here
            tree = ast.parse("".join(parts).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _refused(text, "its syntax") from None
    except (RecursionError, MemoryError):
        raise _refused(text, "what is nested so deeply") from None
    _check(tree, text)
    return tree


def _check(tree: ast.expr, text: str) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_DEPTH):
        for node in level:
            _check_node(node, text)
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
    if level:
        raise _refused(text, "what is nested so deeply")


def _check_node(node: ast.AST, text: str) -> None:
    if isinstance(node, ast.Call):
        name = node.func.id.lower() if isinstance(node.func, ast.Name) else "?"
        if name not in _FUNCTIONS:
            raise unknown_name(f"function in utility '{shown(text)}'", name, _FUNCTIONS)
        _check_arguments(name, len(node.args) + len(node.keywords), text)
    elif isinstance(node, ast.Constant):
        number = node.value
        if not isinstance(number, str) and not (
            isinstance(number, int | float) and abs(number) < _MOST_NUMBER
        ):
            raise _refused(text, f"'{shown(number)}'")
    elif isinstance(node, ast.expr) and not isinstance(node, _ALLOWED):
        raise _refused(text, f"'{shown(ast.unparse(node))}'")
    elif isinstance(node, ast.operator | ast.cmpop) and type(node) not in _OPERATORS:
        raise _refused(text, f"the operator {type(node).__name__}")
    elif isinstance(node, ast.Invert):
        raise _refused(text, "'~'")
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise _refused(text, f"'{shown(ast.unparse(node))}', two comparisons in one,")


def _check_arguments(name: str, count: int, text: str) -> None:
    least, most = _ARGUMENTS[name]
    if not least <= count <= most or (name == "intervals" and count % 3 != 1):
        known = str(least) if least == most else f"{least} or more"
        known = "a value and then low, high and weight of each" if name == "intervals" else known
        raise SpillwayError(
            f"utility is '{shown(text)}': {name.rstrip('_')} has {count} arguments:"
            f" it takes {known}"
        )


def _refused(text: str, what: str) -> SpillwayError:
    known = ", ".join(name.rstrip("_") for name in sorted(_FUNCTIONS))
    return SpillwayError(
        f"utility is '{shown(text)}': {what} is not understood; it must be numbers and columns with"
        f" + - * / %, comparisons, AND, OR, NOT and {known},"
        " for example 'price * volume'"
    )


_ALLOWED = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Constant)

_OPERATORS: Mapping[type, Callable[[Values, Values], Values]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


def _intervals(value: Values, *steps: Values) -> Values:
    """intervals(x, low, high, weight, ...): the weight of the first [low, high) that holds x."""
    found: Values = 0.0
    for i in range(len(steps) - 3, -1, -3):
        low, high, weight = steps[i : i + 3]
        found = np.where((value >= low) & (value < high), weight, found)
    return np.where(np.isnan(value), np.nan, found)


_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "ln": np.log,
    "greatest": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    "least": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "coalesce": lambda a, b: np.where(np.isnan(a), b, a),
    "if_": lambda condition, a, b: np.where(condition, a, b),
    "intervals": _intervals,
}

_ANY = 1000
_ARGUMENTS: Mapping[str, tuple[int, int]] = {  # the least and the most
    **dict.fromkeys(("abs", "sqrt", "ln"), (1, 1)),
    **dict.fromkeys(("greatest", "least"), (1, _ANY)),
    "coalesce": (2, 2),
    "if_": (3, 3),
    "intervals": (4, _ANY),
}


def _value(node: ast.expr, columns: Mapping[str, Values], text: str) -> Values:
    def inner(part: ast.expr) -> Values:
        return _value(part, columns, text)

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](inner(node.left), inner(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return _OPERATORS[type(node.ops[0])](inner(node.left), inner(node.comparators[0]))
    if isinstance(node, ast.BoolOp):
        every = [np.asarray(inner(part), dtype=bool) for part in node.values]
        return (np.logical_and if isinstance(node.op, ast.And) else np.logical_or).reduce(every)
    if isinstance(node, ast.UnaryOp):
        value = inner(node.operand)
        if isinstance(node.op, ast.Not):
            return np.logical_not(value)
        return np.negative(value) if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id.lower()](*map(inner, node.args))
    raise _refused(text, f"'{ast.unparse(node)}'")


def _floats(column: Any) -> Values:
    """Numbers as doubles with NaN for null; times as seconds; text as it is."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(array.type):
        seconds = pc.divide(array.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
        return seconds.to_numpy(zero_copy_only=False)
    return array.cast(pa.float64()).to_numpy(zero_copy_only=False)

"""What of a WHERE a reader can judge as Spark would: comparisons of columns with constants."""

from collections.abc import Callable, Collection, Iterator

from pyspark.sql import types
from pyspark.sql.types import DataType
from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.sql import text_of
from spillway.gate.combination import Condition

# What an expression over keys may consist of: nothing that could be an aggregate or a dice.
SCALAR = (
    *(exp.Identifier, exp.Literal, exp.Alias, exp.Dot, exp.Paren, exp.Null, exp.Boolean),
    *(
        exp.Column,
        exp.Binary,
        exp.Unary,
        exp.Between,
        exp.In,
        exp.Case,
        exp.If,
        exp.Coalesce,
        exp.Nullif,
    ),
    *(exp.Cast, exp.DataType, exp.Upper, exp.Lower, exp.Trim, exp.Length, exp.Abs, exp.Ordered),
)
_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST_WHOLE = 1 << 63

ColumnOf = Callable[[exp.Column], str | None]
KindOf = Callable[[str], DataType | None]


def conditions_of(
    where: exp.Expr | None, keys: Collection[str], column_of: ColumnOf, kind_of: KindOf
) -> tuple[tuple[Condition, ...], list[exp.Expr]]:
    """What the reader judges, and what is left to Spark because it looks at keys only."""
    judged: list[Condition] = []
    left: list[exp.Expr] = []
    for part in _parts(where.this) if where is not None else ():
        found = _judged(part, column_of, kind_of)
        if found is not None:
            judged.append(found)
        elif _is_over(part, keys, column_of):
            left.append(part)
        else:
            raise SpillwayError(f"WHERE {text_of(part)} is no comparison with a constant")
    return tuple(judged), left


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What AND joins."""
    if isinstance(node, exp.Paren):
        yield from _parts(node.this)
    elif isinstance(node, exp.And):
        yield from _parts(node.left)
        yield from _parts(node.right)
    elif isinstance(node, exp.Between) and not node.args.get("symmetric"):
        yield exp.GTE(this=node.this, expression=node.args["low"])
        yield exp.LTE(this=node.this.copy(), expression=node.args["high"])
    else:
        yield node


def _judged(node: exp.Expr, column_of: ColumnOf, kind_of: KindOf) -> Condition | None:
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        found = _judged(node.this, column_of, kind_of)
        return found and Condition(column=found.column, operator="is not null")
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        column = _column(node.this, column_of)
        return None if column is None else Condition(column=column, operator="is null")
    if type(node) not in _OPERATORS:
        return None
    left, right, operator = node.this, node.expression, _OPERATORS[type(node)]
    if isinstance(right, exp.Column):
        left, right, operator = right, left, _TURNED.get(operator, operator)
    column = _column(left, column_of)
    if column is None:
        return None
    value = _constant(right, kind_of(column))
    if value is None:
        return None
    return Condition(column=column, operator=operator, value=value)  # type: ignore[arg-type]


def _column(node: exp.Expr, column_of: ColumnOf) -> str | None:
    return column_of(node) if isinstance(node, exp.Column) else None


def _constant(node: exp.Expr, kind: DataType | None) -> int | float | str | None:
    """The value with which a column of this type is compared; None where Spark would cast."""
    sign = -1 if isinstance(node, exp.Neg) else 1
    node = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name if kind == types.StringType() and sign > 0 else None
    if isinstance(kind, types.DoubleType):
        return sign * float(node.name)
    is_whole = node.name.isdigit() and int(node.name) < _MOST_WHOLE
    return sign * int(node.name) if is_whole and isinstance(kind, _WHOLE) else None


def _is_over(node: exp.Expr, keys: Collection[str], column_of: ColumnOf) -> bool:
    """Does it look at keys only, whatever it computes of them?"""
    found = [column_of(column) for column in node.find_all(exp.Column)]
    plain = all(isinstance(part, SCALAR) for part in node.walk())
    return plain and bool(found) and all(column in keys for column in found)

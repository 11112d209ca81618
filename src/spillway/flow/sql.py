"""Spark SQL as a tree, and what it says of the streams it reads.

sqlglot takes `window(` after GROUP BY for the WINDOW clause. Until the tree is printed again, the
function goes by another name.
"""

import logging
import re
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from spillway.errors import SpillwayError, shown, unknown_name
from spillway.flow.flow import Flow, Query
from spillway.flow.frames import arguments_of

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its advice is no line of ours
TIME_WINDOW = "spillway_time_window"
_INNER = re.compile(r"Required keyword: .*")  # in the words of the parser's own code
_MOST_DEPTH = 200  # levels of a tree: Spark's own analyser goes deeper, a reader does not
_MOST_OPEN_JOINS = 8  # without ON or USING: for each one more the parser takes twice as long


def parse(name: str, sql: str) -> exp.Query:
    """The query as a tree; a syntax error is one line with its place in the text."""
    try:
        if (joins := _open_joins(sql)) > _MOST_OPEN_JOINS:
            raise SpillwayError(
                f"queries.{name}.sql has {joins} joins without ON or USING: say how each one"
                " joins, or CROSS JOIN"
            )
        tree = sqlglot.parse_one(_rename_window(sql), read="spark")
        too_deep = _depth(tree) > _MOST_DEPTH
    except (ParseError, TokenError) as error:
        raise SpillwayError(_described(name, error)) from None
    except RecursionError:
        too_deep = True
    if too_deep:
        raise SpillwayError(
            f"queries.{name}.sql is nested too deeply: write it in several parts, as derived"
            " streams or WITH"
        )
    if not isinstance(tree, exp.Query):
        raise SpillwayError(f"queries.{name}.sql must be a SELECT over the flow's streams")
    return tree


def text_of(tree: exp.Expr) -> str:
    """The tree as Spark SQL."""
    return tree.sql("spark").replace(TIME_WINDOW.upper(), "WINDOW").replace(TIME_WINDOW, "WINDOW")


def with_column(sql: str, column: str) -> str:
    """The text of one SELECT with one more column behind its own, as it was written otherwise."""
    depth = 0
    before: TokenType | None = None
    for token in sqlglot.tokenize(sql, read="spark"):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        is_from = token.token_type == TokenType.FROM and before != TokenType.DISTINCT
        if is_from and depth == 0:
            return f"{sql[: token.start]}, {column} {sql[token.start :]}"
        before = token.token_type
    raise SpillwayError(f"'{shown(sql)}' has no FROM")


def streams_of(name: str, sql: str, flow: Flow) -> tuple[str, ...]:
    """The streams that a query reads, in the flow's order; unknown tables are refused."""
    tree = parse(name, sql)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    found = [table for table in tree.find_all(exp.Table) if table.name not in local]
    tables = [table.name for table in found]
    for table in found:
        if table.name not in flow.streams:
            problem = unknown_name("stream", table.name or table.sql("spark"), flow.streams)
            line = next((n.meta["line"] for n in table.walk() if "line" in n.meta), 1)
            raise SpillwayError(
                f"queries.{name}.sql reads at line {line} a table that is no stream: {problem}"
            )
    if not tables:
        known = ", ".join(flow.streams)
        raise SpillwayError(f"queries.{name}.sql reads no stream: known are {known}")
    return tuple(stream for stream in flow.streams if stream in tables)


def read_by(name: str, query: Query, flow: Flow) -> tuple[str, ...]:
    """The streams that a query reads, of whatever kind it is."""
    if query.python is None:
        return streams_of(name, query.text, flow)
    arguments = arguments_of(name, query.python)
    for argument in arguments:
        if argument not in flow.streams:
            problem = unknown_name("stream", argument, flow.streams)
            raise SpillwayError(f"queries.{name}.python has an argument that is none: {problem}")
    if not arguments:
        raise SpillwayError(
            f"queries.{name}.python takes no argument: name the streams to read, known are"
            f" {', '.join(flow.streams)}"
        )
    return tuple(stream for stream in flow.streams if stream in arguments)


def _rename_window(sql: str) -> str:
    parts, begin = [], 0
    for token, following in pairwise(sqlglot.tokenize(sql, read="spark")):
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            parts += [sql[begin : token.start], TIME_WINDOW]
            begin = token.end + 1
    return "".join([*parts, sql[begin:]])


def _open_joins(sql: str) -> int:
    """Joins that no condition follows, CROSS JOIN excepted."""
    found, before = 0, TokenType.SEMICOLON
    for token in sqlglot.tokenize(sql, read="spark"):
        kind = token.token_type
        found += kind == TokenType.JOIN and before != TokenType.CROSS
        found -= kind in (TokenType.ON, TokenType.USING)
        before = kind
    return found


def _depth(tree: exp.Expr) -> int:
    """Levels of a tree, without recursion."""
    deepest, level = 0, [tree]
    while level and deepest <= _MOST_DEPTH:
        deepest += 1
        level = [inner for node in level for inner in node.iter_expressions()]
    return deepest


def _described(name: str, error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    detail = details[0]
    if "line" not in detail:
        return (
            f"queries.{name}.sql cannot be parsed: a quote, a comment or a bracket is not closed,"
            " or a character has no meaning there"
        )
    place = f"line {detail['line']}, column {detail['col']}, near '{shown(detail['highlight'])}'"
    said = _INNER.sub("something is missing", shown(detail["description"]))
    return f"queries.{name}.sql cannot be parsed at {place}: {said}"

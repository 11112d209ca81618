"""What a query's SQL says of the streams it reads."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from spillway.errors import SpillwayError, unknown_name
from spillway.queries.flow import Flow


def parse(name: str, sql: str) -> exp.Query:
    """The query as a tree; a syntax error is one line with its place in the text."""
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        place = f"line {detail.get('line')}, column {detail.get('col')}"
        near = detail.get("highlight") or ""
        raise SpillwayError(
            f"queries.{name}.sql cannot be parsed at {place}, near '{near}':"
            f" {detail.get('description', error)}"
        ) from error
    if not isinstance(tree, exp.Query):
        raise SpillwayError(f"queries.{name}.sql must be a SELECT over the flow's streams")
    return tree


def streams_of(name: str, sql: str, flow: Flow) -> tuple[str, ...]:
    """The streams that a query reads, in the flow's order; unknown tables are refused."""
    tree = parse(name, sql)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = [table.name for table in tree.find_all(exp.Table) if table.name not in local]
    for table in tables:
        if table not in flow.streams:
            problem = unknown_name("stream", table, flow.streams)
            raise SpillwayError(f"queries.{name}.sql reads a table that is no stream: {problem}")
    if not tables:
        raise SpillwayError(
            f"queries.{name}.sql reads no stream: known are {', '.join(flow.streams)}"
        )
    return tuple(stream for stream in flow.streams if stream in tables)

"""SQL against the columns that its streams have: names, functions, and what types rule out.

Only what Spark is sure to refuse is refused here. Where something is not known (the columns of a
file that is not there yet, what a pivot makes) nothing is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import sqlglot
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.tokenizer_core import TokenType

from spillway.check.columns import Columns
from spillway.check.misfits import misfits
from spillway.check.words import (
    FUNCTIONS,
    GENERATORS,
    OF_THE_GATE,
    UNITS,
    WITHOUT_PARENTHESES,
)
from spillway.errors import nearest_of, shown
from spillway.flow.sql import TIME_WINDOW, parse

UNNAMED = "#"  # begins what stands for the names that Spark makes up
_NESTED = (StructType, MapType, ArrayType, VariantType)
_SEVERAL = (exp.Explode, exp.Posexplode, exp.Inline, exp.Aliases)  # columns of one expression


@dataclass(frozen=True, kw_only=True)
class SqlProblem:
    line: int  # of the SQL
    text: str


@dataclass(frozen=True, kw_only=True)
class Analysis:
    problems: tuple[SqlProblem, ...]
    columns: Columns | None  # of the result; None: not known


@dataclass(kw_only=True)
class _Sources:
    """What a SELECT reads, by alias in lower case. None: the columns are not known."""

    by_alias: dict[str, Columns | None] = field(default_factory=dict)
    shared: bool = False  # a column may stand in two of them: USING, NATURAL

    @property
    def are_known(self) -> bool:
        return all(columns is not None for columns in self.by_alias.values())

    def with_column(self, name: str) -> list[str]:
        return [a for a, columns in self.by_alias.items() if columns and name in columns]


def analysed(name: str, sql: str, streams: Mapping[str, Columns | None]) -> Analysis:
    """`streams`: the columns of each stream, None where they are not known."""
    tree = parse(name, sql)
    try:
        return _Analyst(streams).look(tree, sql)
    except (SqlglotError, RecursionError):
        return Analysis(
            problems=(), columns=None
        )  # the reader is at fault, Spark has the last word


class _Analyst:
    def __init__(self, streams: Mapping[str, Columns | None]) -> None:
        self._streams = {
            name.lower(): None if columns is None else {c.lower(): t for c, t in columns.items()}
            for name, columns in streams.items()
        }
        self._written = {c.lower(): c for columns in streams.values() for c in columns or ()}
        self._results: dict[int, Columns | None] = {}  # of the scopes that are done
        self._seen: set[int] = set()  # columns: a query shows those of the queries inside of it
        self._problems: dict[tuple[int, str], SqlProblem] = {}

    def look(self, tree: exp.Query, sql: str) -> Analysis:
        self._look_at_functions(tree, sql)
        columns: Columns | None = None
        for scope in traverse_scope(tree):
            columns = self._look_at(scope)
            self._results[id(scope)] = columns
        for node, said in misfits(tree):
            self._note(node, said)
        return Analysis(problems=tuple(self._problems.values()), columns=columns)

    def _note(self, node: exp.Expr, text: str) -> None:
        line = next((n.meta["line"] for n in node.walk() if "line" in n.meta), 1)
        self._problems.setdefault((line, text), SqlProblem(line=line, text=text))

    def _look_at_functions(self, tree: exp.Query, sql: str) -> None:
        tokens = sqlglot.tokenize(sql, read="spark")
        aliases = {a.name.lower() for a in tree.find_all(exp.TableAlias)}
        before = TokenType.SEMICOLON
        for token, following in pairwise(tokens):
            called = token.token_type == TokenType.VAR and following.token_type == TokenType.L_PAREN
            name = token.text.lower()
            if called and before != TokenType.DOT and name not in FUNCTIONS | aliases:
                near = nearest_of(name, sorted(FUNCTIONS), cutoff=0.6)
                hint = f": did you mean {near}?" if near else ""
                text = f"{shown(token.text)}() is no function of Spark SQL{hint}"
                found = SqlProblem(line=token.line, text=text)
                self._problems.setdefault((token.line, text), found)
            if token.token_type == TokenType.COMMA and following.token_type == TokenType.FROM:
                text = "a comma stands before FROM: leave it out, or name one more column"
                self._problems[token.line, text] = SqlProblem(line=token.line, text=text)
            before = token.token_type

    def _look_at(self, scope: Scope) -> Columns | None:
        tree = scope.expression
        if isinstance(tree, exp.SetOperation):
            return self._look_at_union(scope, tree)
        if not isinstance(tree, exp.Select):
            return None
        sources = self._sources_of(scope, tree)
        aliases = {e.alias.lower() for e in tree.expressions if e.alias}
        for column in scope.columns:
            if id(column) not in self._seen:
                self._seen.add(id(column))
                self._look_at_column(scope, column, sources, aliases)
        self._look_at_exceptions(tree, sources)
        return _result(tree, sources)

    def _look_at_exceptions(self, tree: exp.Select, sources: _Sources) -> None:
        """What `* EXCEPT (...)` leaves out has to be there."""
        for star in tree.find_all(exp.Star) if sources.are_known else ():
            left_out = star.args.get("except_") or star.args.get("except") or ()
            for name in left_out if star.find_ancestor(exp.Select) is tree else ():
                if not sources.with_column(name.name.lower()):
                    self._note(star, self._unknown(name.name, sources))

    def _look_at_union(self, scope: Scope, tree: exp.SetOperation) -> Columns | None:
        sides = [self._results.get(id(part)) for part in scope.set_operation_scopes]
        left, right = (*sides, None, None)[:2]
        counts = [len(side) for side in (left, right) if side is not None]
        by_name = tree.args.get("by_name")
        if len(counts) == 2 and counts[0] != counts[1] and not by_name:
            said = f"{tree.key.upper()} of {counts[0]} columns with {counts[1]}: both sides need"
            self._note(tree, f"{said} as many")
        return left

    def _sources_of(self, scope: Scope, tree: exp.Select) -> _Sources:
        sources = _Sources()
        joins = tree.args.get("joins") or []
        sources.shared = any(
            j.args.get("using") or j.method or j.kind in ("SEMI", "ANTI") for j in joins
        )
        for alias, (node, source) in scope.selected_sources.items():
            columns = self._columns_of(source)
            if node.args.get("pivots") or node.args.get("alias_column_names"):
                columns = None
            sources.by_alias[alias.lower()] = columns
        for join in joins:
            if join.kind in ("SEMI", "ANTI"):  # its columns may only stand in ON
                sources.by_alias.setdefault(join.alias_or_name.lower(), None)
        for lateral in tree.args.get("laterals") or []:
            alias = lateral.args.get("alias")
            made = [c.name.lower() for c in alias.columns] if alias is not None else []
            named = alias.name.lower() if alias is not None else ""
            sources.by_alias[named] = dict.fromkeys(made) if made else None
        return sources

    def _columns_of(self, source: exp.Expr | Scope) -> Columns | None:
        if isinstance(source, exp.Table):
            return self._streams.get(source.name.lower())
        columns = self._results.get(id(source))
        if columns is not None and any(name.startswith(UNNAMED) for name in columns):
            return None
        alias = source.expression.parent if isinstance(source, Scope) else None
        renamed = alias.args.get("alias") if alias is not None else None
        if columns is not None and isinstance(renamed, exp.TableAlias) and renamed.columns:
            return dict(
                zip((c.name.lower() for c in renamed.columns), columns.values(), strict=False)
            )
        return columns

    def _look_at_column(
        self, scope: Scope, column: exp.Column, sources: _Sources, aliases: set[str]
    ) -> None:
        first, *rest = (part.name.lower() for part in column.parts)
        if isinstance(column.this, exp.Star) or _is_word(column, first):
            return
        if rest and first in sources.by_alias:
            self._look_inside(column, first, rest[0], sources)
            return
        found = sources.with_column(first)
        if len(found) > 1 and not sources.shared and not rest and first not in aliases:
            self._note(
                column, f"column '{shown(column.name)}' is in {' and '.join(found)}: say which"
            )
        kind = (sources.by_alias[found[0]] or {}).get(first) if found else None
        if rest and kind is not None and not isinstance(kind, _NESTED):
            said = f"'{shown(column.parts[0].name)}' is {kind.simpleString()}: it has no fields"
            self._note(column, said)
        if found or first in aliases or first in OF_THE_GATE or not sources.are_known:
            if len(found) == 1 and not rest and first not in aliases:
                column.set("table", exp.to_identifier(found[0]))
                _typed(column, sources.by_alias[found[0]], first)
            return
        if not self._is_outside(scope, first):
            self._note(column, self._unknown(column.parts[0].name, sources))

    def _look_inside(self, column: exp.Column, alias: str, name: str, sources: _Sources) -> None:
        columns = sources.by_alias[alias]
        if columns is None or name in OF_THE_GATE:
            return
        if name in columns:
            _typed(column, columns, name)
        else:
            one = _Sources(by_alias={alias: columns})
            self._note(column, self._unknown(column.parts[1].name, one, f" of {alias}"))

    def _is_outside(self, scope: Scope, name: str) -> bool:
        """Whether a query around this one has it, or may have."""
        outer = scope.parent
        while outer is not None:
            if not isinstance(outer.expression, exp.Select):
                return True
            around = self._sources_of(outer, outer.expression)
            outer = outer.parent
            if name in around.by_alias or around.with_column(name) or not around.are_known:
                return True
        return False

    def _unknown(self, name: str, sources: _Sources, where: str = "") -> str:
        known = [c for columns in sources.by_alias.values() for c in columns or ()]
        spelt = [self._written.get(c, c) for c in dict.fromkeys(known)]
        near = nearest_of(name, spelt)
        hint = f"did you mean '{near}'? " if near else ""
        listed = ", ".join(spelt[:40]) or "none"
        return f"there is no column '{shown(name)}'{where}: {hint}there are {listed}"


def _is_word(column: exp.Column, name: str) -> bool:
    """Bare words that are no columns: units of time, functions without parentheses, `window`."""
    if name in ("window", "session_window"):
        wanted = (TIME_WINDOW, "session_window")
        root = column.root()
        return any(node.name.lower() in wanted for node in root.find_all(exp.Anonymous)) or any(
            node.key == "sessionwindow" for node in root.walk()
        )
    if len(column.parts) > 1 or column.this.args.get("quoted"):
        return False
    in_call = isinstance(column.parent, exp.Func)
    return name in WITHOUT_PARENTHESES or (in_call and name in UNITS)


def _typed(column: exp.Column, columns: Columns | None, name: str) -> None:
    kind = (columns or {}).get(name)
    if kind is not None and len(column.parts) <= 2:
        column.type = sql_type(kind)


def sql_type(kind: DataType) -> exp.DataType:
    return exp.DataType.build(kind.simpleString(), dialect="spark")


def _result(tree: exp.Select, sources: _Sources) -> Columns | None:
    """What a SELECT gives; only the types of columns that are passed on are kept."""
    found: dict[str, DataType | None] = {}
    for number, expression in enumerate(tree.expressions):
        star = expression.this if isinstance(expression, exp.Column) else expression
        if isinstance(star, exp.Star):
            table = expression.table.lower() if isinstance(expression, exp.Column) else None
            if star.args.get("except_") or star.args.get("except") or star.args.get("replace"):
                return None
            for alias in [table] if table else list(sources.by_alias):
                columns = sources.by_alias.get(alias or "")
                if columns is None or any(name in found for name in columns):
                    return None
                found |= columns
            continue
        if isinstance(expression, _SEVERAL) or expression.name.lower() in GENERATORS:
            return None
        is_named = isinstance(expression, exp.Alias | exp.Column | exp.Cast)
        name = expression.alias_or_name.lower() if is_named else ""
        if name in found or not name:
            name = f"{UNNAMED}{number}"
        found[name] = _passed_on(expression, sources)
    return found


def _passed_on(expression: exp.Expr, sources: _Sources) -> DataType | None:
    inner = expression.this if isinstance(expression, exp.Alias) else expression
    if not isinstance(inner, exp.Column) or len(inner.parts) > 2:
        return None
    holders: Sequence[str] = (
        [inner.table.lower()] if inner.table else sources.with_column(inner.name.lower())
    )
    kinds = [(sources.by_alias.get(alias) or {}).get(inner.name.lower()) for alias in holders]
    return kinds[0] if len(kinds) == 1 else None

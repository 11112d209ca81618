"""Templates as data: one SQL text with :parameters becomes one plan for all its instances.

Each instance is a row of a table. The first stream of the query is joined with that table once,
and from there on every row carries its instance: `query_id` becomes part of every projection,
group key, window partition and join condition, and `:name` becomes the column that holds the
instance's value. Results per `query_id` are those of running each instance as its own query.

Some parameters must be literals in Spark: the durations of time windows. Instances are grouped by
these (a shape), and the plan is the union of one branch per shape.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.flow.sql import TIME_WINDOW, parse, text_of

QUERY_ID = "query_id"
VERSION = "_version"  # stamped on the stream's rows by the gate: which instances a batch sees
SHAPE = "_shape"
ADDED, REMOVED = "_added", "_removed"
_WINDOWS = (TIME_WINDOW, "session_window")


def column_of(parameter: str) -> str:
    """The column of the instance table, and of every row, that holds a parameter's value."""
    return f"_p_{parameter}"


def is_carried(column: str) -> bool:
    """Columns that only make the fused plan work; a result does not show them."""
    return column == VERSION or column.startswith(column_of(""))


@dataclass(frozen=True, kw_only=True)
class Template:
    """A parsed template: which parameters it has, and which of them must be literals."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    literal_parameters: tuple[str, ...]

    @classmethod
    def parse(cls, name: str, sql: str) -> "Template":
        tree = parse(name, sql)
        _refuse_what_has_no_meaning_per_instance(name, tree)
        placeholders = list(tree.find_all(exp.Placeholder))
        literal = {p.name for p in placeholders if _must_be_literal(p)}
        elsewhere = {p.name for p in placeholders if not _must_be_literal(p)}
        if literal & elsewhere:
            raise SpillwayError(
                f"queries.{name}.template uses :{min(literal & elsewhere)} both as a window's"
                " duration and as a value: use two parameters"
            )
        return cls(
            name=name,
            sql=sql,
            parameters=tuple(sorted(literal | elsewhere)),
            literal_parameters=tuple(sorted(literal)),
        )

    @property
    def value_parameters(self) -> tuple[str, ...]:
        """Those that become columns of the instance table."""
        return tuple(p for p in self.parameters if p not in self.literal_parameters)

    def fused(self, instances: str, shapes: Sequence[Mapping[str, str]]) -> str:
        """One SQL text for all instances; `instances` is the table, `shapes` its literal values.

        Shape number i is the row of `shapes` that instances with `_shape` = i share.
        """
        branches = [self._branch(instances, i, shape) for i, shape in enumerate(shapes)]
        return " UNION ALL ".join(f"({branch})" for branch in branches)

    def instantiated(self, values: Mapping[str, object]) -> str:
        """The query of one instance alone, with its values as literals."""
        tree = parse(self.name, self.sql)
        for placeholder in list(tree.find_all(exp.Placeholder)):
            placeholder.replace(exp.convert(values[placeholder.name]))
        return text_of(tree)

    def _branch(self, instances: str, number: int, shape: Mapping[str, str]) -> str:
        tree = parse(self.name, self.sql)
        for placeholder in list(tree.find_all(exp.Placeholder)):
            if placeholder.name in shape:
                placeholder.replace(exp.Literal.string(shape[placeholder.name]))
        columns = [column_of(p) for p in self.value_parameters]
        joined = _Instances(table=instances, shape=number, columns=tuple(columns))
        return text_of(_Carrier(self.name, joined).carry(tree))


def _must_be_literal(placeholder: exp.Placeholder) -> bool:
    window = placeholder.find_ancestor(exp.Anonymous, exp.SessionParameter)
    return isinstance(window, exp.Anonymous) and window.name.lower() in _WINDOWS


def _refuse_what_has_no_meaning_per_instance(name: str, tree: exp.Query) -> None:
    for kind, what in ((exp.Limit, "LIMIT"), (exp.Order, "ORDER BY")):
        for node in tree.find_all(kind):
            if not isinstance(node.parent, exp.Window):
                raise SpillwayError(
                    f"queries.{name}.template has {what}: it would rank all instances together;"
                    " use a query of its own, or rank in the sink"
                )
    for join in tree.find_all(exp.Join):
        if join.side in ("RIGHT", "FULL"):
            raise SpillwayError(
                f"queries.{name}.template has a {join.side} JOIN: unmatched rows would belong to"
                " no instance; write it as a LEFT JOIN"
            )
    for node in tree.find_all(exp.Subquery, exp.Exists):
        if not isinstance(node.parent, exp.From | exp.Join | exp.Query):
            raise SpillwayError(
                f"queries.{name}.template has a subquery inside an expression: write it as a join"
            )


@dataclass(frozen=True, kw_only=True)
class _Instances:
    table: str
    shape: int
    columns: tuple[str, ...]

    def joined_with(self, stream: exp.Table | exp.Subquery) -> exp.Subquery:
        """The stream with every row repeated for each instance that is active in its batch.

        The conditions that single out an instance stay in the query's WHERE: Spark moves them
        into this join, where equalities become the keys of a hash join.
        """
        alias = stream.alias_or_name
        carried = ", ".join(f"_q.{column}" for column in (QUERY_ID, *self.columns))
        body = parse(
            alias,
            f"SELECT /*+ BROADCAST(_q) */ {carried}, _s.* FROM {stream.name} AS _s"
            f" JOIN {self.table} AS _q ON _q.{SHAPE} = {self.shape}"
            f" AND _s.{VERSION} >= _q.{ADDED} AND _s.{VERSION} < _q.{REMOVED}",
        )
        return exp.Subquery(this=body, alias=exp.TableAlias(this=exp.to_identifier(alias)))


class _Carrier:
    """Makes every SELECT of a tree carry its instance."""

    def __init__(self, name: str, instances: _Instances) -> None:
        self._name = name
        self._instances = instances

    def carry(self, query: exp.Query) -> exp.Query:
        for cte in query.find_all(exp.CTE):
            self._one(cte.this, top=False)
        self._one(query, top=True)
        return query

    def _one(self, query: exp.Expr, *, top: bool) -> None:
        if isinstance(query, exp.SetOperation):
            self._one(query.left, top=top)
            self._one(query.right, top=top)
        elif isinstance(query, exp.Subquery):
            self._one(query.this, top=top)
        elif isinstance(query, exp.Select):
            self._select(query, top=top)

    def _select(self, select: exp.Select, *, top: bool) -> None:
        ctes = {cte.alias for cte in select.root().find_all(exp.CTE)}
        sources = list(_sources(select))
        carriers: list[exp.Table | exp.Subquery] = []
        for source in sources:
            if isinstance(source, exp.Subquery):
                self._one(source.this, top=False)
                carriers.append(source)
            elif source.name in ctes:
                carriers.append(source)
        if not carriers:
            attached = self._instances.joined_with(sources[0])
            sources[0].replace(attached)
            carriers = [attached]
        aliases = [carrier.alias_or_name for carrier in carriers]
        self._fill_in(select, aliases[0])
        self._keep_apart(select, carriers)
        self._project(select, aliases[0], top=top)

    def _fill_in(self, select: exp.Select, alias: str) -> None:
        for placeholder in _own(select, exp.Placeholder):
            placeholder.replace(exp.column(column_of(placeholder.name), table=alias))
        for window in _own(select, exp.Window):
            partition = [
                exp.column(QUERY_ID, table=alias),
                *(window.args.get("partition_by") or []),
            ]
            window.set("partition_by", partition)

    def _keep_apart(self, select: exp.Select, carriers: Sequence[exp.Expr]) -> None:
        """Rows of two carriers meet only inside one instance."""
        first = carriers[0].alias_or_name
        for other in carriers[1:]:
            same = exp.EQ(
                this=exp.column(QUERY_ID, table=first),
                expression=exp.column(QUERY_ID, table=other.alias_or_name),
            )
            join = other.parent
            if isinstance(join, exp.Join) and join.args.get("on") is not None:
                join.set("on", exp.and_(join.args["on"], same))
            else:
                select.where(same, copy=False)

    def _project(self, select: exp.Select, alias: str, *, top: bool) -> None:
        inner = () if top else self._instances.columns
        carried = [exp.column(c, table=alias) for c in (QUERY_ID, *inner)]
        if select.is_star:
            return  # the carrier's columns are in the star
        select.set("expressions", [*(c.copy() for c in carried), *select.expressions])
        if select.args.get("group") is None and not _aggregates(select):
            return
        keys = carried if not top else [carried[0], *self._used_parameters(select, alias)]
        old = select.args.get("group")
        groups = [*(key.copy() for key in keys), *(old.expressions if old else [])]
        select.set("group", exp.Group(expressions=groups))

    def _used_parameters(self, select: exp.Select, alias: str) -> list[exp.Column]:
        """Parameters that stand where only group keys may: in projections and HAVING."""
        places = [*select.expressions, *filter(None, [select.args.get("having")])]
        named = {column.name for place in places for column in place.find_all(exp.Column)}
        used = named & set(self._instances.columns)
        return [exp.column(name, table=alias) for name in sorted(used)]


def _sources(select: exp.Select) -> Iterator[exp.Table | exp.Subquery]:
    start = select.args.get("from_") or select.args.get("from")
    if start is not None:
        yield start.this
    for join in select.args.get("joins") or []:
        yield join.this


def _own(select: exp.Select, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Nodes of this SELECT itself, not of the queries inside its FROM."""
    for node in list(select.find_all(kind)):
        if node.find_ancestor(exp.Select) is select:
            yield node


def _aggregates(select: exp.Select) -> bool:
    return any(
        not isinstance(node.parent, exp.Window)
        for expression in select.expressions
        for node in expression.find_all(exp.AggFunc)
    )

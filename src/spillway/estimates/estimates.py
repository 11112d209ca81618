"""`estimate: true`: aggregates over a shed stream become estimates with bounds.

The rewritten query computes weighted sums per group, then the formulas of `numbers` from them, as
plain SQL. Each aggregate `x` is followed by `x_low` and `x_high`; every row ends with
`_seen`, the fraction of its tuples that was not shed. What cannot be estimated soundly is refused
here, before anything runs.
"""

from statistics import NormalDist

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.estimates import keys as estimates_keys
from spillway.estimates import sql as estimates_sql
from spillway.estimates.sql import EXTREMES, Estimated, Key, Output
from spillway.flow.sql import parse
from spillway.flow.time_windows import is_time_window
from spillway.gate.shedders.shedder import Shedder

_REFUSED_CLAUSES = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "joins": "JOIN",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "laterals": "LATERAL VIEW",
}


def estimated(
    name: str,
    sql: str,
    *,
    selection: Shedder | None = None,
    policy: str = "uniform",
    confidence: float = 0.95,
) -> str:
    """The query with estimates; raises where they would not be sound.

    `selection` is the stream's shedder; None is a uniform sample.
    """
    _require_sound_shedder(name, selection, policy)
    tree = parse(name, sql)
    if not isinstance(tree, exp.Select):
        raise _refused(name, "UNION", "each part would have bounds of its own; use two queries")
    _require_plain(name, tree)
    outputs = [_output(name, projection) for projection in tree.expressions]
    if not any(isinstance(output, Estimated) for output in outputs):
        raise SpillwayError(
            f"queries.{name}.estimate is true, but the query has no aggregate: its rows are exact"
            " as they are; leave estimate out"
        )
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    for output in outputs:
        _require_sound_aggregate(name, output, selection)
    if selection is not None and selection.whole_keys is not None:
        return estimates_keys.assembled(name, tree, outputs, selection.whole_keys, z)
    return estimates_sql.assembled(tree, outputs, z)


def counts_distinct(name: str, sql: str) -> bool:
    """Has the query an aggregate over DISTINCT values, as Spark does not allow over a stream?"""
    found = parse(name, sql).find_all(exp.AggFunc)
    return any(isinstance(aggregate.this, exp.Distinct) for aggregate in found)


_KINDS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.ApproxDistinct: "distinct",
}


def _require_sound_shedder(name: str, selection: Shedder | None, policy: str) -> None:
    if policy == "fresh":
        raise SpillwayError(
            f"queries.{name}.estimate cannot be sound with policy 'fresh': the oldest tuples have"
            " no chance to be kept; use policy uniform"
        )
    if selection is not None and selection.no_sample and selection.whole_keys is None:
        why = f"{selection.no_sample}; use shedder uniform or strata"
        raise _refused(name, f"shedder '{selection.name}'", why)


def _require_plain(name: str, tree: exp.Select) -> None:
    reasons = {
        "JOIN": "pairs of kept tuples are no random sample of all pairs",
        "HAVING": "it would choose groups by their estimates, and bounds would no longer hold",
        "LIMIT": "it would choose groups by their estimates, and bounds would no longer hold",
    }
    for key, clause in _REFUSED_CLAUSES.items():
        if tree.args.get(key):
            raise _refused(name, clause, reasons.get(clause, "it is not understood there"))
    start = tree.args.get("from_") or tree.args.get("from")
    if start is None or not isinstance(start.this, exp.Table):
        raise _refused(name, "a subquery", "only a stream's own rows carry their weights")
    if tree.find(exp.Window):
        raise _refused(name, "OVER", "ranks and running totals need every tuple")


def _require_sound_aggregate(name: str, output: Output, selection: Shedder | None) -> None:
    """Distinct values need whole keys; over whole keys everything else is left as it is."""
    if not isinstance(output, Estimated):
        return
    keys = selection.whole_keys if selection is not None else None
    if output.kind == "distinct":
        argument = output.argument
        if keys is not None and isinstance(argument, exp.Column) and argument.name == keys.column:
            return
        what = argument.sql("spark") if argument else ""
        raise _refused(
            name,
            f"COUNT(DISTINCT {what})",
            "how many values were shed before they were ever seen cannot be told from such a"
            " sample; give the stream shedder key on that column, which keeps values as a whole",
        )
    if selection is not None and keys is not None and output.kind not in EXTREMES:
        raise _refused(
            name,
            f"{output.kind} after shedder '{selection.name}'",
            f"{selection.no_sample}; count(DISTINCT {keys.column}), min and max can be estimated,"
            " for the rest use shedder uniform or strata",
        )


def _output(name: str, projection: exp.Expr) -> Output:
    inner = projection.this if isinstance(projection, exp.Alias) else projection
    aggregates = list(inner.find_all(exp.AggFunc))
    if not aggregates:
        return Key(name=_name_of(name, projection), expression=inner)
    found = aggregates[0]
    if type(found) not in _KINDS:
        known = ", ".join(dict.fromkeys(_KINDS.values()))
        raise _refused(name, found.sql("spark"), f"known are {known}")
    if found is not inner:
        why = "it computes with an aggregate; select the aggregate itself and compute in the sink"
        raise _refused(name, inner.sql("spark"), why)
    kind, argument = _KINDS[type(found)], found.this
    if isinstance(argument, exp.Distinct):
        if kind != "count" or len(argument.expressions) != 1:
            why = "of distinct values only one column's can be counted"
            raise _refused(name, inner.sql("spark"), why)
        kind, argument = "distinct", argument.expressions[0]
    if found.args.get("expressions"):
        raise _refused(name, inner.sql("spark"), "it has several arguments; use one")
    if isinstance(argument, exp.Star):
        argument = None
    return Estimated(name=_name_of(name, projection), kind=kind, argument=argument)


def _name_of(name: str, projection: exp.Expr) -> str:
    if isinstance(projection, exp.Alias | exp.Column | exp.Dot):
        return projection.alias_or_name
    if is_time_window(projection):
        return "window"
    raise SpillwayError(
        f"queries.{name}.estimate needs a name for '{projection.sql('spark')}': write"
        f" {projection.sql('spark')} AS some_name"
    )


def _refused(name: str, what: str, why: str) -> SpillwayError:
    return SpillwayError(f"queries.{name}.estimate cannot be sound with {what}: {why}")

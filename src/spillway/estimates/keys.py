"""Estimates over whole keys: how many there were, when some were shed before they were ever seen.

In one epoch a key has one place u, uniform in [0, 1), and a batch with limit L keeps it where
u < L. Of the batches of a window that hold the key, the one with the largest limit L* decides: the
key is seen at all if and only if u < L*, and if it is seen, it is seen there. So 1 / L* is the
smallest weight among its seen tuples, and the sum of those over the seen keys is unbiased
(Horvitz-Thompson). Keys stay or go independently, so its variance is sum w (w - 1), and the bounds
are those of a count among infinitely many places. The limit is the place of the first key that did
not fit any more, which keeps it unbiased although it was chosen by looking at the keys.

A window that lies in two epochs has two draws for every key, and a key that was seen in one of them
says nothing about whether it was there in the other: such windows are refused.

The rewritten query aggregates twice: by key, then by group. Spark chains the two in append mode.
"""

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.estimates.sql import (
    EXTREMES,
    GAP_UNTIL,
    SEEN,
    WEIGHT,
    Key,
    Output,
    Parts,
    gapped,
    layered,
    with_projections,
)
from spillway.flow.sql import text_of
from spillway.flow.time_windows import is_time_window, shown, time_window
from spillway.gate.shedders.shedder import WholeKeys

_WINDOW = "window"
_EXACT = "_thinnest <= 1D"  # no tuple that was seen came from a batch that shed


def assembled(name: str, tree: exp.Select, outputs: list[Output], keys: WholeKeys, z: float) -> str:
    """The query with estimates, over a sample of keys."""
    groups = _groups(name, tree, keys)
    by_key, sums, steps, columns = _once(groups, keys), [], [], []
    for number, output in enumerate(outputs):
        if isinstance(output, Key):
            sums.append(f"{text_of(_over_groups(output.expression))} AS `{output.name}`")
            columns.append(f"`{output.name}`")
            continue
        prefix = f"_{number}_"
        parts = Parts(output, prefix, z)
        if output.kind in EXTREMES:
            assert output.argument is not None
            extreme = output.kind.upper()
            by_key.append(f"{extreme}({text_of(output.argument)}) AS {prefix}x")
            sums.append(f"{extreme}({prefix}x) AS {prefix}x")
        else:
            sums += _distinct_sums(prefix)
        steps += parts.steps(_EXACT)
        columns += parts.shown()
    sums += ["MAX(_thinnest) AS _thinnest", f"SUM(_rows) / NULLIF(SUM(_offered), 0D) AS {SEEN}"]
    sums.append(gapped(f"{_WINDOW}.start"))
    inner = tree.copy()
    inner.set("group", exp.Group(expressions=[*groups.values(), exp.column(keys.column)]))
    names = ", ".join(f"`{group}`" for group in groups)
    outer = f"SELECT {', '.join(sums)} FROM ({with_projections(inner, by_key)}) GROUP BY {names}"
    return layered(outer, steps, columns)


def _once(groups: dict[str, exp.Expr], keys: WholeKeys) -> list[str]:
    """What is computed for every key and group, whatever the aggregates."""
    return [
        *(f"{text_of(expression)} AS `{group}`" for group, expression in groups.items()),
        f"`{keys.column}` AS _key",
        f"MIN({WEIGHT}) AS _least",
        f"MAX({WEIGHT}) AS _thinnest",
        "COUNT(1) AS _rows",
        f"SUM({WEIGHT}) AS _offered",
        f"MAX({GAP_UNTIL}) AS {GAP_UNTIL}",
    ]


def _distinct_sums(prefix: str) -> list[str]:
    here = "CASE WHEN _key IS NOT NULL THEN _least END"
    made = {
        "n": "COUNT(_key)",
        "w": f"COALESCE(SUM({here}), 0D)",
        "ww": f"SUM(({here}) * _least)",
        "span": "DOUBLE('Infinity')",
        "sure": f"COUNT(CASE WHEN ({here}) <= 1D THEN 1 END)",
    }
    return [f"{value} AS {prefix}{key}" for key, value in made.items()]


def _groups(name: str, tree: exp.Select, keys: WholeKeys) -> dict[str, exp.Expr]:
    """The group's columns by name, with a window that lies inside one epoch among them."""
    group = tree.args.get("group")
    aliases = {e.alias: e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    found: dict[str, exp.Expr] = {}
    for written in group.expressions if group else ():
        is_alias = isinstance(written, exp.Column) and is_time_window(
            aliases.get(written.name, written)
        )
        expression = aliases[written.name] if is_alias else written
        if is_time_window(expression):
            _require_one_epoch(name, expression, keys)
            found[_WINDOW] = expression
        elif isinstance(expression, exp.Column):
            found[expression.name] = expression
        else:
            raise _refused(name, f"'{text_of(expression)}' in GROUP BY is no column and no window")
    if _WINDOW not in found:
        raise _refused(name, "the query needs GROUP BY window(event time, ...) inside one epoch")
    return found


def _require_one_epoch(name: str, window: exp.Expr, keys: WholeKeys) -> None:
    found, epoch_us = time_window(window), keys.epoch_us
    if found is None or not found.tumbling or found.start_us % found.length_us:
        raise _refused(name, f"{text_of(window)} is no tumbling window of fixed length")
    if found.column != keys.time_column:
        raise _refused(
            name,
            f"{text_of(window)} is over '{found.column}', but keys change with"
            f" '{keys.time_column}': make it the stream's event_time",
        )
    if epoch_us % found.length_us:
        better = shown(-(-epoch_us // found.length_us) * found.length_us)
        raise _refused(
            name,
            f"a window of {shown(found.length_us)} can lie in two epochs of {shown(epoch_us)},"
            f" which keep different keys; give the stream an epoch of {better}",
        )


def _over_groups(expression: exp.Expr) -> exp.Expr:
    """A key of the result in terms of the inner query's columns."""

    def renamed(node: exp.Expr) -> exp.Expr:
        if is_time_window(node):
            return exp.column(_WINDOW)
        if isinstance(node, exp.Column) and node.table and node.table != _WINDOW:
            return exp.column(node.name)
        return node

    return expression.transform(renamed)


def _refused(name: str, why: str) -> SpillwayError:
    return SpillwayError(f"queries.{name}.estimate cannot be sound over whole keys: {why}")

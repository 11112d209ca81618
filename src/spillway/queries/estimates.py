"""`estimate: true`: aggregates over a shed stream become estimates with bounds.

The rewritten query computes weighted sums per group, then the formulas of estimates_numbers from
them, as plain SQL. Each aggregate `x` is followed by `x_low` and `x_high`; every row ends with
`_seen`, the fraction of its tuples that was not shed. What cannot be estimated soundly is refused
here, before anything runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

from sqlglot import exp

from spillway.errors import SpillwayError
from spillway.queries.estimates_numbers import LEAST_EFFECTIVE, LEAST_KEPT
from spillway.queries.sql import TIME_WINDOW, parse, text_of

WEIGHT, PLACE, SEEN = "_weight", "_place", "_seen"

_REFUSED_SHEDDERS = {
    "key": "keys stay or go as a whole, so the tuples of a group are no random sample",
    "utility": "the least useful tuples have no chance to be kept, so nothing speaks for them",
    "windows": "the windows that remain are complete: their results are exact as they are",
}
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
    shedder: str = "uniform",
    policy: str = "uniform",
    confidence: float = 0.95,
) -> str:
    """The query with estimates; raises where they would not be sound."""
    _require_sound_shedder(name, shedder, policy)
    tree = parse(name, sql)
    if not isinstance(tree, exp.Select):
        raise _refused(name, "UNION", "each part would have bounds of its own; use two queries")
    _require_plain(name, tree)
    outputs = [_output(name, projection) for projection in tree.expressions]
    if not any(isinstance(output, _Estimated) for output in outputs):
        raise SpillwayError(
            f"queries.{name}.estimate is true, but the query has no aggregate: its rows are exact"
            " as they are; leave estimate out"
        )
    return _assembled(tree, outputs, NormalDist().inv_cdf(0.5 + confidence / 2.0))


@dataclass(frozen=True, kw_only=True)
class _Key:
    """A projection without an aggregate: stays as it is."""

    name: str
    expression: exp.Expr


@dataclass(frozen=True, kw_only=True)
class _Estimated:
    """An aggregate; `argument` is None for count(*)."""

    name: str
    kind: str
    argument: exp.Expr | None


_Output = _Key | _Estimated

_KINDS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}


def _require_sound_shedder(name: str, shedder: str, policy: str) -> None:
    if policy == "fresh":
        raise SpillwayError(
            f"queries.{name}.estimate cannot be sound with policy 'fresh': the oldest tuples have"
            " no chance to be kept; use policy uniform"
        )
    if shedder in _REFUSED_SHEDDERS:
        raise SpillwayError(
            f"queries.{name}.estimate cannot be sound with shedder '{shedder}':"
            f" {_REFUSED_SHEDDERS[shedder]}; use shedder uniform or strata"
        )


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


def _output(name: str, projection: exp.Expr) -> _Output:
    inner = projection.this if isinstance(projection, exp.Alias) else projection
    aggregates = list(inner.find_all(exp.AggFunc))
    if not aggregates:
        return _Key(name=_name_of(name, projection), expression=inner)
    found = aggregates[0]
    if type(found) not in _KINDS:
        raise _refused(name, found.sql("spark"), f"known are {', '.join(_KINDS.values())}")
    if found is not inner:
        why = "it computes with an aggregate; select the aggregate itself and compute in the sink"
        raise _refused(name, inner.sql("spark"), why)
    argument = found.this
    if isinstance(argument, exp.Distinct):
        why = "how many values were shed before they were ever seen cannot be told from a sample"
        raise _refused(name, inner.sql("spark"), why)
    if found.args.get("expressions"):
        raise _refused(name, inner.sql("spark"), "it has several arguments; use one")
    if isinstance(argument, exp.Star):
        argument = None
    return _Estimated(name=_name_of(name, projection), kind=_KINDS[type(found)], argument=argument)


def _name_of(name: str, projection: exp.Expr) -> str:
    if isinstance(projection, exp.Alias | exp.Column | exp.Dot):
        return projection.alias_or_name
    if isinstance(projection, exp.Anonymous) and projection.name == TIME_WINDOW:
        return "window"
    raise SpillwayError(
        f"queries.{name}.estimate needs a name for '{projection.sql('spark')}': write"
        f" {projection.sql('spark')} AS some_name"
    )


def _refused(name: str, what: str, why: str) -> SpillwayError:
    return SpillwayError(f"queries.{name}.estimate cannot be sound with {what}: {why}")


def _assembled(tree: exp.Select, outputs: list[_Output], z: float) -> str:
    raw = tree.copy()
    sums, steps, shown = [], [], []
    for number, output in enumerate(outputs):
        if isinstance(output, _Key):
            sums.append(f"{text_of(output.expression)} AS `{output.name}`")
            shown.append(f"`{output.name}`")
            continue
        parts = _Parts(output, f"_{number}_", z)
        sums += parts.sums()
        steps += parts.steps()
        shown += parts.shown()
    sums.append(f"COUNT(1) / NULLIF(SUM({WEIGHT}), 0D) AS {SEEN}")
    raw.set("expressions", [exp.column("spillway_sums")])
    inner = text_of(raw).replace("spillway_sums", ", ".join(sums), 1)
    derived = ", ".join(["*", *steps])
    return f"SELECT {', '.join([*shown, SEEN])} FROM (SELECT {derived} FROM ({inner}))"


class _Parts:
    """One aggregate's sums, the steps from them to its bounds, and the columns that are shown."""

    def __init__(self, output: _Estimated, prefix: str, z: float) -> None:
        self._output = output
        self._prefix = prefix
        self._z = z

    def sums(self) -> list[str]:
        kind, argument = self._output.kind, self._output.argument
        text = "1" if argument is None else text_of(argument)
        here = f"CASE WHEN ({text}) THEN 1 END" if kind == "count_if" else f"({text})"
        w = WEIGHT if argument is None else f"CASE WHEN {here} IS NOT NULL THEN {WEIGHT} END"
        p = self._prefix
        made = {
            "n": f"COUNT({here})",
            "w": f"COALESCE(SUM({w}), 0D)",
            "ww": f"SUM(({w}) * {WEIGHT})",
        }
        if kind in ("min", "max"):
            made["x"] = f"{kind.upper()}({here})"
        if kind in ("count", "count_if", "sum"):
            place = PLACE if argument is None else f"CASE WHEN {here} IS NOT NULL THEN {PLACE} END"
            made["span"] = f"MAX({place}) - MIN({place}) + 1"
        if kind in ("sum", "avg"):
            x = f"CAST({here} AS DOUBLE)"
            made |= {
                "wx": f"SUM({WEIGHT} * {x})",
                "vx": f"SUM({WEIGHT} * ({WEIGHT} - 1) * {x})",
                "vxx": f"SUM({WEIGHT} * ({WEIGHT} - 1) * {x} * {x})",
                "g": f"COALESCE(SKEWNESS({x}), 0D)",
                "e": f"COALESCE(KURTOSIS({x}), 0D)",
            }
        return [f"{value} AS {p}{key}" for key, value in made.items()]

    def steps(self) -> list[str]:
        """Each step may use the ones before it."""
        kind = self._output.kind
        made = {"full": "{ww} <= {w}", "k": _K}
        if kind in ("count", "count_if", "sum"):
            made |= _COUNT_STEPS
        if kind in ("sum", "avg"):
            made |= _AVG_STEPS
        if kind == "sum":
            made |= _SUM_STEPS
        return [f"{self._filled(text)} AS {self._prefix}{key}" for key, text in made.items()]

    def shown(self) -> list[str]:
        alias = self._output.name
        columns = (alias, f"{alias}_low", f"{alias}_high")
        texts = map(self._filled, _SHOWN[self._output.kind])
        return [f"{text} AS `{column}`" for text, column in zip(texts, columns, strict=True)]

    def _filled(self, text: str) -> str:
        """Names in braces become this aggregate's columns; z and the t coefficients numbers."""
        z = self._z
        numbers = {
            "z": z,
            "zz": z * z,
            "t1": (z**3 + z) / 4.0,
            "t2": (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
            "t3": (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        }
        columns = {key: f"{self._prefix}{key}" for key in _COLUMNS}
        return text.format(**columns, **{key: f"{value!r}D" for key, value in numbers.items()})


# NULL where there are too few tuples for bounds; everything that follows is NULL with it.
_K = (
    f"CASE WHEN {{n}} >= {LEAST_KEPT} AND {{w}} * {{w}} >= {LEAST_EFFECTIVE} * {{ww}}"
    " THEN {w} * {w} / {ww} END"
)

_COUNT_STEPS = {
    "c": "{ww} / NULLIF({w}, 0D) - 1",
    "s": "GREATEST({w}, {span} * ({n} + 1D) / NULLIF({n} - 1D, 0D))",
    "a": "1 + {zz} * {c} / {s}",
    "b": "{w} + {zz} * {c} / 2",
    "r": "SQRT(GREATEST(0D, {b} * {b} - {a} * {w} * {w}))",
    "cl": "CASE WHEN {full} THEN {w} WHEN {k} IS NOT NULL THEN GREATEST({n}, ({b} - {r}) / {a})"
    " END",
    "ch": "CASE WHEN {full} THEN {w} WHEN {k} IS NOT NULL THEN ({b} + {r}) / {a} END",
}
_AVG_STEPS = {
    "m": "{wx} / NULLIF({w}, 0D)",
    "v": "GREATEST(0D, {vxx} - 2 * {m} * {vx} + {m} * {m} * ({ww} - {w}))",
    "se": "SQRT({v} * {k} / ({k} - 1)) / {w}",
    "df": "GREATEST(4D, ({k} - 1) / (1 + GREATEST(0D, {e}) / 2))",
    "t": "{z} + {t1} / {df} + {t2} / ({df} * {df}) + {t3} / ({df} * {df} * {df})",
    "gk": "{g} * SQRT({k} - 1) / ({k} - 2)",
    "u": "SQRT(GREATEST(0D, 1 - {n} / NULLIF({w}, 0D)))",
    "ga": "{gk} * {u}",
    "gb": "CASE WHEN {u} > 0 THEN {gk} * (2 * {u} * {u} - 1) / {u} ELSE 0D END",
    "sh": "GREATEST(-{t}, LEAST({t}, {ga} / 2 - ({gb} - 3 * {ga}) * ({zz} - 1) / 6))",
    "al": "CASE WHEN {full} THEN {m} ELSE {m} + ({sh} - {t}) * {se} END",
    "ah": "CASE WHEN {full} THEN {m} ELSE {m} + ({sh} + {t}) * {se} END",
}
_SUM_STEPS = {
    "nl": "ABS({m}) * CASE WHEN {m} >= 0 THEN {w} - {cl} ELSE {ch} - {w} END",
    "nh": "ABS({m}) * CASE WHEN {m} >= 0 THEN {ch} - {w} ELSE {w} - {cl} END",
}
_SHOWN = {
    "count": ("{w}", "{cl}", "{ch}"),
    "count_if": ("{w}", "{cl}", "{ch}"),
    "avg": ("{m}", "{al}", "{ah}"),
    "sum": (
        "{wx}",
        "{wx} - SQRT({nl} * {nl} + {w} * ({m} - {al}) * {w} * ({m} - {al}))",
        "{wx} + SQRT({nh} * {nh} + {w} * ({ah} - {m}) * {w} * ({ah} - {m}))",
    ),
    # What was seen bounds the extreme on one side for sure; the other side stays open.
    "min": ("{x}", "CASE WHEN {full} THEN {x} END", "{x}"),
    "max": ("{x}", "{x}", "CASE WHEN {full} THEN {x} END"),
}


def _columns() -> Iterator[str]:
    yield from ("n", "w", "ww", "x", "span", "wx", "vx", "vxx", "g", "e", "full", "k")
    for steps in (_COUNT_STEPS, _AVG_STEPS, _SUM_STEPS):
        yield from steps


_COLUMNS = tuple(_columns())

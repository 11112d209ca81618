"""The SQL of estimates: sums per group, the steps from them to the bounds, the columns shown.

The formulas are those of `numbers`. Each row says up to which arrival tuples are missing before it
that nobody read (`_gap_until`). A group whose window began before that touches the gap: how many of
its tuples are among those cannot be told, so it has no bounds and no `_seen`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spillway.estimates.numbers import CUT_POSITIONS, LEAST_EFFECTIVE, LEAST_KEPT
from spillway.flow.sql import text_of
from spillway.flow.time_windows import is_time_window

WEIGHT, PLACE, SEEN = "_weight", "_place", "_seen"
GAP_UNTIL, GAPPED = "_gap_until", "_gapped"
EXTREMES = ("min", "max")


@dataclass(frozen=True, kw_only=True)
class Key:
    """A projection without an aggregate: stays as it is."""

    name: str
    expression: exp.Expr


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """An aggregate; `argument` is None for count(*)."""

    name: str
    kind: str
    argument: exp.Expr | None


Output = Key | Estimated


def assembled(tree: exp.Select, outputs: list[Output], z: float) -> str:
    """The query with estimates, over a sample of tuples."""
    raw = tree.copy()
    sums, steps, shown = [], [], []
    for number, output in enumerate(outputs):
        if isinstance(output, Key):
            sums.append(f"{text_of(output.expression)} AS `{output.name}`")
            shown.append(f"`{output.name}`")
            continue
        parts = Parts(output, f"_{number}_", z)
        sums += parts.sums()
        steps += parts.steps()
        shown += parts.shown()
    sums.append(f"COUNT(1) / NULLIF(SUM({WEIGHT}), 0D) AS {SEEN}")
    sums.append(gapped(_window_start(tree)))
    return layered(with_projections(raw, sums), steps, shown)


def gapped(window_start: str | None) -> str:
    """Whether a group touches a gap. Without a window it does from the first gap on."""
    last = f"MAX({GAP_UNTIL})"
    touches = f"{last} IS NOT NULL" if window_start is None else f"{last} > {window_start}"
    return f"COALESCE({touches}, FALSE) AS {GAPPED}"


def _window_start(tree: exp.Select) -> str | None:
    group, aliases = tree.args.get("group"), {e.alias: e.unalias() for e in tree.expressions}
    for key in group.expressions if group else ():
        written = aliases.get(key.name, key) if isinstance(key, exp.Column) else key
        if is_time_window(written):
            return f"{text_of(written)}.start"
    return None


def with_projections(tree: exp.Select, texts: list[str]) -> str:
    """The SELECT with other columns, given as Spark SQL."""
    tree.set("expressions", [exp.column("spillway_columns")])
    return text_of(tree).replace("spillway_columns", ", ".join(texts), 1)


def layered(sums: str, steps: list[str], shown: list[str]) -> str:
    """Each step may use the ones before it; the last layer shows what was asked for."""
    derived = ", ".join(["*", *steps])
    seen = f"CASE WHEN NOT {GAPPED} THEN {SEEN} END AS {SEEN}"
    return f"SELECT {', '.join([*shown, seen])} FROM (SELECT {derived} FROM ({sums}))"


class Parts:
    """One aggregate's sums, the steps from them to its bounds, and the columns that are shown."""

    def __init__(self, output: Estimated, prefix: str, z: float) -> None:
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
        if kind in EXTREMES:
            made["x"] = f"{kind.upper()}({here})"
        if kind in ("count", "count_if", "sum"):
            place = PLACE if argument is None else f"CASE WHEN {here} IS NOT NULL THEN {PLACE} END"
            made["span"] = f"MAX({place}) - MIN({place}) + 1"
            made["sure"] = f"COUNT(CASE WHEN ({w}) <= 1D THEN 1 END)"
        if kind in ("sum", "avg"):
            x = f"CAST({here} AS DOUBLE)"
            made |= {
                "wx": f"SUM({WEIGHT} * {x})",
                "vx": f"SUM({WEIGHT} * ({WEIGHT} - 1) * {x})",
                "vxx": f"SUM({WEIGHT} * ({WEIGHT} - 1) * {x} * {x})",
                "vv": f"SUM(POWER(({w}) * ({WEIGHT} - 1), 2))",
                "g": f"COALESCE(SKEWNESS({x}), 0D)",
                "e": f"COALESCE(KURTOSIS({x}), 0D)",
            }
        return [f"{value} AS {p}{key}" for key, value in made.items()]

    def steps(self, full: str = "{ww} <= {w}") -> list[str]:
        """Each step may use the ones before it. `full`: nothing that was seen was thinned."""
        kind = self._output.kind
        made = {"full": f"{full} AND NOT {GAPPED}"}
        if kind not in EXTREMES:
            made["k"] = _K
        if kind in ("count", "count_if", "sum", "distinct"):
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
    f" AND NOT {GAPPED} THEN {{w}} * {{w}} / {{ww}} END"
)

_COUNT_STEPS = {
    "h": "{w} - {sure}",
    "c": "CASE WHEN {h} > 0 THEN ({ww} - {w}) / {h} ELSE 0D END",
    "s": "CASE WHEN {h} > 0 THEN"
    f" GREATEST({{h}}, ({{span}} * ({{n}} + 1D) / NULLIF({{n}} - 1D, 0D) + {CUT_POSITIONS!r}D)"
    " * {h} / {w}) ELSE 1D END",
    "a": "1 + {zz} * {c} / {s}",
    "b": "{h} + {zz} * {c} / 2",
    "r": "SQRT(GREATEST(0D, {b} * {b} - {a} * {h} * {h}))",
    "cl": "CASE WHEN {full} THEN {w}"
    " WHEN {k} IS NOT NULL THEN GREATEST({n}, {sure} + ({b} - {r}) / {a}) END",
    "ch": "CASE WHEN {full} THEN {w} WHEN {k} IS NOT NULL THEN {sure} + ({b} + {r}) / {a} END",
}
_AVG_STEPS = {
    "m": "{wx} / NULLIF({w}, 0D)",
    "v": "GREATEST(0D, {vxx} - 2 * {m} * {vx} + {m} * {m} * ({ww} - {w}))",
    "d": "GREATEST(2D, POWER({ww} - {w}, 2) / NULLIF({vv}, 0D))",
    "se": "CASE WHEN {k} IS NOT NULL THEN SQRT({v} * {d} / ({d} - 1)) / {w} END",
    "df": "GREATEST(4D, ({d} - 1) / (1 + GREATEST(0D, {e}) / 2))",
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
    "distinct": ("{w}", "{cl}", "{ch}"),
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
    yield from ("n", "w", "ww", "x", "span", "sure", "wx", "vx", "vxx", "vv", "g", "e", "full", "k")
    for steps in (_COUNT_STEPS, _AVG_STEPS, _SUM_STEPS):
        yield from steps


_COLUMNS = tuple(_columns())

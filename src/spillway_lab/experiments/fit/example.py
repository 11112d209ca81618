"""`fit-example`: table 1's plans, the look-ups of section 3.4 and the split of figure 3."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from spillway.cluster.fit.build import build_table, build_tables
from spillway.cluster.fit.decide import shed
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.spread import MaxError
from spillway.cluster.fit.topology import exact
from spillway.report import Table
from spillway_lab.experiments.fit import paper
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

# rates at A; printed: load and throughput of A, then of B
TABLE_1 = (
    ("1 1", "3", "1/3 1/3", "4/3", "1/4 1/4"),
    ("1/3 1/3", "1", "1/3 1/3", "4/3", "1/4 1/4"),
    ("1 0", "1", "1 0", "3", "1/3 0"),
    ("0 1/2", "1", "0 1/2", "1/2", "0 1/2"),
    ("1/5 2/5", "1", "1/5 2/5", "1", "1/5 2/5"),
)
_RATES = {("A", "1"): 1.0, ("A", "2"): 1.0}


def consequences(rates: str) -> tuple[str, ...]:
    """What follows from the rates at A: its load and throughput, then B's."""
    at_a = tuple(Fraction(word) for word in rates.split())
    from_a = paper.round_robin(at_a, paper.A_COSTS)
    from_b = paper.round_robin(from_a, paper.B_COSTS)
    loads = paper.load(at_a, paper.A_COSTS), paper.load(from_a, paper.B_COSTS)
    return str(loads[0]), _words(from_a), str(loads[1]), _words(from_b)


def _words(values: tuple[Fraction, ...]) -> str:
    return " ".join(map(str, values))


def run(setup: Setup) -> Report:
    rows = [(number, row[0], *consequences(row[0])) for number, row in enumerate(TABLE_1)]
    agree = all(consequences(row[0]) == row[1:] for row in TABLE_1)
    checks = (
        Check(
            name="table 1, five plans",
            paper="loads and throughputs as printed",
            here="all equal, exactly" if agree else "different",
            holds=agree,
            note="with selectivity 1 at B; section 3 uses 0.5 for B's upper path",
        ),
        _coordinated(),
        *_look_ups(),
        _split(),
    )
    columns = ("plan", "rates at A", "A load", "A throughput", "B load", "B throughput")
    results: dict[str, Any] = {"plans": [dict(zip(columns, row, strict=True)) for row in rows]}
    table = Table(title="Table 1, computed", columns=columns, rows=rows)
    return Report(
        experiment="fit-example", setup=setup, results=results, checks=checks, tables=(table,)
    )


def _coordinated() -> Check:
    topology = paper.figure_1(paper.TABLE_1_SELECTIVITY)
    tables = build_tables(topology, MaxError(score=exact("0.02")))
    found = shed(topology, tables, _RATES)
    best = optimum(topology, _RATES).score
    return Check(
        name="A sheds for B (plan 4)",
        paper="1/5, 2/5: optimal",
        here=f"{found.delivered['q1']:.3g}, {found.delivered['q2']:.3g}: {found.score:.4g}"
        f" of {best:.4g}, stated error 0.02",
        holds=best - found.score <= tables["A"].error and max(found.loads.values()) <= 1 + 1e-9,
    )


def _look_ups() -> tuple[Check, ...]:
    table = build_table(paper.node_b(paper.SECTION_3_SELECTIVITY), {}, MaxError(score=exact("0.1")))
    free = table.look_up((0.2, 0.35))
    over = table.look_up((0.5, 0.5))
    found = tuple(round(keep * 0.5, 9) for keep in over.input_keep)
    finer = build_table(
        paper.node_b(paper.SECTION_3_SELECTIVITY), {}, MaxError(score=exact("0.05"))
    ).look_up((0.5, 0.5))
    return (
        Check(
            name="entries of B's table",
            paper="46",
            here=str(table.rows),
            holds=table.rows == 46,
            note="multiples of 0.1 and 0.05 with 3 r1 + r2 <= 1 are 21 + 15 + 9 + 3 = 48; adding"
            " up the spread in floating point loses (0.3, 0.1) and (0, 1), the paper's best entry",
        ),
        Check(
            name="look-up (0.2, 0.35)",
            paper="not overloaded",
            here="sheds" if free.sheds else "not overloaded",
            holds=not free.sheds,
        ),
        Check(
            name="look-up (0.5, 0.5)",
            paper="(0.15, 0.5), score 0.575",
            here=f"{found}, score {over.score:.4g}",
            holds=found == (0.15, 0.5),
            note="0.15 is not a multiple of the spread 0.1; with half the maximum error (spread"
            f" 0.05) the row exists: r1 x {finer.input_keep[0]:.3g}, score {finer.score:.4g}",
        ),
    )


def _split() -> Check:
    node = paper.figure_3()
    table = build_table(node, {}, MaxError(score=exact("0.04")))
    drop, score = split_at(0.2)
    no_plan = float(2 / (1 + Fraction(2) + 5))
    return Check(
        name="split, r = 0.2",
        paper="drop 60 % below, score 0.28 against 0.25; R = 1/3",
        here=f"drop {drop:.0%} below, score {score:.3g} against {no_plan:.3g};"
        f" R >= {table.rates.max():.3g}",
        holds=abs(drop - 0.6) < 1e-9 and abs(score - 0.28) < 1e-9,
        note="the paper calls 0.125 the nearest feasible point: 2 tuples x 0.125 = 0.25",
    )


def split_at(rate: float) -> tuple[float, float]:
    """Share dropped on the bottom path, and the score, at one rate of figure 3's input."""
    node = replace(paper.figure_3(), name="split")
    table = build_table(node, {}, MaxError(score=exact("0.04")))
    row = table.best_row((rate,))
    plan = table.plan_of(row, (rate,))
    return 1.0 - plan.path_keep[1], float(table.scores[row])


EXPERIMENTS = (
    Experiment(
        name="fit-example",
        title="two nodes, five plans: why nodes must shed for each other",
        source="FIT 2006, table 1, figures 1 to 3",
        run=run,
    ),
)

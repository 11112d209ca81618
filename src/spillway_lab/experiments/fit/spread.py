"""`fit-spread`: rows against error, for a maximum error and for a table size."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from spillway.cluster.fit.build import build_table
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.spread import Axis, MaxError, Resolution, TableSize, spreads_of_error
from spillway.cluster.fit.table import FeasibleInputTable
from spillway.cluster.fit.topology import Topology, exact
from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.experiments.fit import paper
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERRORS = ("0.4", "0.2", "0.1", "0.05", "0.02", "0.01")
SIZES = (8, 16, 48, 128, 512, 2048)
_PROBES = 200

B_AXES = (
    Axis(upper=Fraction(1, 3), value=paper.SECTION_3_SELECTIVITY),
    Axis(upper=Fraction(1), value=Fraction(1)),
)


def run(setup: Setup) -> Report:
    rng = np.random.default_rng(setup.seed)
    probes = rng.uniform(0.0, 1.2, size=(_PROBES, 2))
    topology = Topology((paper.node_b(paper.SECTION_3_SELECTIVITY),))
    best = np.array([optimum(topology, {("B", "1"): x, ("B", "2"): y}).score for x, y in probes])
    kinds: list[tuple[str, Resolution]] = [
        *((f"error {e}", MaxError(score=exact(e))) for e in ERRORS),
        *((f"rows {n}", TableSize(rows=n)) for n in SIZES),
    ]
    rows: list[tuple[str, int, float, float, float]] = []
    for number, (name, resolution) in enumerate(kinds):
        setup.progress(name, number / len(kinds))
        table = build_table(topology.nodes[0], {}, resolution)
        gaps = best - np.array([table.scores[table.best_row(p)] for p in probes.tolist()])
        rows.append((name, table.rows, table.error, float(gaps.max()), float(gaps.mean())))
    columns = ("asked for", "rows", "stated error", "worst gap", "mean gap")
    results: dict[str, Any] = {"tables": [dict(zip(columns, r, strict=True)) for r in rows]}
    return Report(
        experiment="fit-spread",
        setup=setup,
        results=results,
        checks=_checks(rows),
        tables=(Table(title=f"Node B, {_PROBES} random inputs", columns=columns, rows=rows),),
        pictures={"": lambda: _draw(rows, build_table(topology.nodes[0], {}, kinds[2][1]))},
    )


def _checks(rows: list[tuple[str, int, float, float, float]]) -> tuple[Check, ...]:
    found = spreads_of_error(B_AXES, MaxError(score=exact("0.1")))
    within = sum(gap <= stated + 1e-9 for _, _, stated, gap, _ in rows)
    sized = rows[len(ERRORS) + 2]
    bounded = all(
        count <= size for (_, count, *_), size in zip(rows[-len(SIZES) :], SIZES, strict=True)
    )
    return (
        Check(
            name="spreads of node B, error 0.1",
            paper="0.1 and 0.05",
            here=" and ".join(f"{float(s):g}" for s in found),
            holds=found == (Fraction(1, 10), Fraction(1, 20)),
        ),
        Check(
            name="gap within the stated error",
            paper="at most the maximum error",
            here=f"{within} of {len(rows)} tables",
            holds=within == len(rows),
        ),
        Check(
            name=f"size variant: error of a table of {SIZES[2]}",
            paper=f"m times the sum of s_i sel_i: {2 * sized[2]:.3g}",
            here=f"the sum alone: {sized[2]:.3g}; worst gap {sized[3]:.3g}",
            holds=sized[3] > sized[2],
            note="the paper's first variant has no such m; it cancels when errors are made equal,"
            " but the error it would state is m times too large",
        ),
        Check(
            name="size variant: rows within the size",
            paper="B points",
            here="yes" if bounded else "no",
            holds=bounded,
            note="the paper counts the whole grid; here infeasible points do not count",
        ),
    )


def _draw(rows: list[tuple[str, int, float, float, float]], table: FeasibleInputTable) -> Figure:
    figure, (points, errors) = panels(1, 2, height=3.6)
    points.plot([0, 1 / 3], [1, 0], color="black", linewidth=1, label="3 r1 + r2 = 1")
    points.scatter(table.rates[0], table.rates[1], s=10, color="#1f77b4")
    label(points, x="r1 (tuples/s)", y="r2 (tuples/s)", title=f"Feasible points ({table.rows})")
    points.legend(frameon=False)
    for start, stop, name, marker in (
        (0, len(ERRORS), "maximum error", "o"),
        (len(ERRORS), len(rows), "table size", "s"),
    ):
        part = rows[start:stop]
        counts = [row[1] for row in part]
        errors.loglog(counts, [r[2] for r in part], marker + "--", label=f"stated, {name}")
        errors.loglog(counts, [r[3] for r in part], marker + "-", label=f"worst gap, {name}")
    label(errors, x="rows", y="score", title="Error against size")
    errors.legend(frameon=False, fontsize=8)
    return figure


EXPERIMENTS = (
    Experiment(
        name="fit-spread",
        title="how many rows buy how much quality",
        source="FIT 2006, section 3.2, figure 2",
        run=run,
    ),
)

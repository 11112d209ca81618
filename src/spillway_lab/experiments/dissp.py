"""dissp-uncontrolled, -targets, -cdf: the latency controller of the dissp paper (fig. 5-7)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spillway.load import laws
from spillway.model import Target
from spillway.pictures import label, lines, panels
from spillway.report import Table
from spillway.workloads import curves
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.network import Network
from spillway_lab.engine.networks import dissp_queries, make_setting
from spillway_lab.engine.run import Run, simulate
from spillway_lab.experiments.outcomes import Floats, Outcome, numbers, outcome_of
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Kalyvianaki, Charalambous, Fiscato, Pietzuch: Overload management, 2012"
PERIOD_S = 0.25
GAIN = 0.1
TARGETS_S = (0.5, 1.0, 2.0, 3.0)
QUERIES = tuple(range(20, 201, 20))
OVERLOADED_FROM = 120
UNCONTROLLED_S = 200.0
CONTROLLED_S = 120.0
BUNDLE = 20  # users of the same query whose operators are simulated as one: same input, same time


@dataclass(frozen=True, kw_only=True)
class Spec:
    """So many users, with this target, or uncontrolled."""

    queries: int
    target_s: float | None
    seed: int
    duration_s: float

    def __str__(self) -> str:
        wanted = f"{self.target_s:g} s" if self.target_s else "uncontrolled"
        return f"{self.queries} queries, {wanted}"


@dataclass(frozen=True, kw_only=True)
class Found:
    outcome: Outcome
    settled_s: float  # mean latency of all results after the first staircase
    kept_tuples: float  # per control period, while the controller is in charge
    busy: float  # share of the processor's time
    cdf_s: Floats
    cdf_share: Floats


def bundled(queries: int) -> Network:
    """Every operator stands for the same operator of twenty users."""
    network = dissp_queries(queries // BUNDLE)
    operators = (replace(op, cost_s=op.cost_s * BUNDLE) for op in network.operators)
    return Network(operators=tuple(operators), streams=network.streams)


def run(spec: Spec) -> Found:
    setting = make_setting("dissp")
    network = bundled(spec.queries)
    stairs = curves.dissp_staircase(spec.duration_s)
    plant = NetworkPlant(
        network,
        curves.arrivals_of(stairs, spec.duration_s, spec.seed),
        target=Target(delay_s=spec.target_s or 1.0),
        engine=setting.engine,
        delay=setting.delay,
        seed=spec.seed,
    )
    manager = laws.make("dissp", gain=GAIN) if spec.target_s else laws.make("none")
    with warnings.catch_warnings():  # the paper's own gain is outside its bound at T = 3 s
        warnings.simplefilter("ignore", RuntimeWarning)
        found = simulate(plant, manager, spec.duration_s, PERIOD_S)
    outcome = outcome_of(found)
    cdf_s, cdf_share = found.delays.cdf()
    cost_s = sum(op.cost_s / (1.0 if op.rows > 1 else 10.0) for op in network.operators)
    return Found(
        outcome=outcome,
        settled_s=_settled_s(found),
        kept_tuples=float(found.admitted.mean()),
        busy=min(1.0, found.totals.completed_tuples * cost_s / spec.duration_s),
        cdf_s=cdf_s,
        cdf_share=cdf_share,
    )


def _settled_s(found: Run) -> float:
    """After one round of the staircase (or half of a shorter run)."""
    cycle_s = curves.DISSP_STEP_S * len(curves.DISSP_STEPS_PER_S)
    late = found.time_s > min(cycle_s, found.time_s[-1] / 2.0)
    results = found.delays.by_completion.counts(found.time_s.size)[late]
    if not results.sum():
        return 0.0
    return float(np.nansum(found.delay_s[late] * results) / results.sum())


def uncontrolled(setup: Setup, duration_s: float = UNCONTROLLED_S) -> Report:
    shown = (20, 40, 60, 80, 100, 120, 160, 200)
    specs = [Spec(queries=q, target_s=None, seed=setup.seed, duration_s=duration_s) for q in shown]
    runs = dict(zip(shown, run_all(run, specs, setup.progress), strict=True))
    end_s = {q: float(np.nanmean(f.outcome.delay_s[-40:])) for q, f in runs.items()}
    rows = [(q, f.settled_s, end_s[q], int(f.outcome.queued_tuples[-1])) for q, f in runs.items()]
    return Report(
        experiment="dissp-uncontrolled",
        setup=setup,
        results={
            f"{q}": {
                "latency_at_the_end_s": round(end_s[q], 4),
                "queued_tuples": int(f.outcome.queued_tuples[-1]),
                "latency_s": numbers(f.outcome.delay_s[::8]),
            }
            for q, f in runs.items()
        },
        checks=[
            Check(
                name="up to 80 queries the latency stays low",
                paper="low",
                here=f"{max(end_s[q] for q in (20, 40, 60, 80)):.2f} s at the end, at most",
                holds=max(end_s[q] for q in (20, 40, 60, 80)) < 3.0,
            ),
            Check(
                name="from 100 queries on it grows without end",
                paper="increases rapidly until memory runs out",
                here=f"{end_s[100]:.1f} s (100 queries) and {end_s[200]:.1f} s (200) after"
                f" {duration_s:g} s",
                holds=end_s[100] > 5.0 and end_s[200] > end_s[100],
            ),
        ],
        tables=[
            Table(
                title="no controller (fig. 5)",
                columns=("queries", "mean latency (s)", "at the end (s)", "tuples waiting"),
                rows=rows,
            )
        ],
        pictures={"": lambda: _uncontrolled_picture(runs)},
    )


def _uncontrolled_picture(runs: Mapping[int, Found]) -> Figure:
    figure, axes = panels(1, height=4.0)
    shown = {f"{q} queries": (f.outcome.time_s, f.outcome.delay_s) for q, f in runs.items()}
    lines(axes[0], shown, y="mean latency (s)", log=True)
    figure.suptitle("No controller (dissp paper fig. 5)")
    return figure


def targets(setup: Setup, duration_s: float = CONTROLLED_S) -> Report:
    pairs = [(t, q) for t in TARGETS_S for q in QUERIES]
    specs = [Spec(queries=q, target_s=t, seed=setup.seed, duration_s=duration_s) for t, q in pairs]
    found = dict(zip(pairs, run_all(run, specs, setup.progress), strict=True))
    rows = [
        (
            q,
            *(found[t, q].settled_s for t in TARGETS_S),
            *(found[t, q].kept_tuples for t in TARGETS_S),
        )
        for q in QUERIES
    ]
    columns = ("queries", *(f"latency (s), T = {t:g} s" for t in TARGETS_S))
    columns += tuple(f"kept per period, T = {t:g} s" for t in TARGETS_S)
    return Report(
        experiment="dissp-targets",
        setup=setup,
        results={
            f"{t:g}": {
                f"{q}": found[t, q].outcome.summary()
                | {
                    "latency_s": round(found[t, q].settled_s, 4),
                    "kept_tuples_per_period": round(found[t, q].kept_tuples, 2),
                    "busy": round(found[t, q].busy, 4),
                }
                for q in QUERIES
            }
            for t in TARGETS_S
        },
        checks=_target_checks(found),
        tables=[Table(title="with the controller (fig. 6)", columns=columns, rows=rows)],
        pictures={"": lambda: _targets_picture(found)},
    )


def _target_checks(found: Mapping[tuple[float, int], Found]) -> list[Check]:
    overloaded = [q for q in QUERIES if q >= OVERLOADED_FROM]
    checks = []
    for t in TARGETS_S:
        off = max(abs(found[t, q].settled_s - t) / t for q in overloaded)
        checks.append(
            Check(
                name=f"T = {t:g} s: mean latency at the target from 120 queries on",
                paper="at the target value",
                here=f"at most {off:.1%} off",
                holds=off <= 0.15,
                note=""
                if off <= 0.15
                else "At the low steps of the staircase 120 queries do not overload the engine:"
                " nothing needs to wait there, so the mean lies below the target.",
            )
        )
    queue = [found[t, 200].outcome.queued_tuples.mean() for t in TARGETS_S]
    checks.append(
        Check(
            name="the larger the target, the more tuples are kept waiting",
            paper="number of tuples kept increases with the target",
            here=", ".join(f"{q:.0f}" for q in queue) + " in the buffer at 200 queries",
            holds=all(a < b for a, b in pairwise(queue)),
        )
    )
    return checks


def _targets_picture(found: Mapping[tuple[float, int], Found]) -> Figure:
    figure, axes = panels(3)
    names = ("mean latency (s)", "processor busy (%)", "kept per period (tuples)")
    for t in TARGETS_S:
        runs = [found[t, q] for q in QUERIES]
        columns = zip(*((f.settled_s, 100.0 * f.busy, f.kept_tuples) for f in runs), strict=True)
        for axis, values in zip(axes, columns, strict=True):
            axis.plot(QUERIES, values, marker="o", label=f"T = {t:g} s")
    for axis, name in zip(axes, names, strict=True):
        axis.legend(fontsize=8, ncols=4)
        label(axis, x="queries", y=name)
    figure.suptitle("Four targets, 20 to 200 queries (dissp paper fig. 6)")
    return figure


def cdf(setup: Setup, duration_s: float = CONTROLLED_S) -> Report:
    specs = [
        Spec(queries=200, target_s=t, seed=setup.seed, duration_s=duration_s) for t in TARGETS_S
    ]
    runs = dict(zip(TARGETS_S, run_all(run, specs, setup.progress), strict=True))
    spread = {t: _quantile(f, 0.9) - _quantile(f, 0.1) for t, f in runs.items()}
    quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = [
        (t, f.settled_s, *(_quantile(f, q) for q in quantiles), spread[t]) for t, f in runs.items()
    ]
    columns = ("target (s)", "mean (s)", *(f"p{100 * q:g} (s)" for q in quantiles), "p90 - p10 (s)")
    return Report(
        experiment="dissp-cdf",
        setup=setup,
        results={
            f"{t:g}": {
                "mean_s": round(f.settled_s, 4),
                "quantiles_s": {f"{q:g}": round(_quantile(f, q), 4) for q in quantiles},
                "p90_minus_p10_s": round(spread[t], 4),
            }
            for t, f in runs.items()
        },
        checks=_cdf_checks(runs, list(spread.values())),
        tables=[Table(title="latencies at 200 queries (fig. 7)", columns=columns, rows=rows)],
        pictures={"": lambda: _cdf_picture(runs)},
    )


def _quantile(found: Found, share: float) -> float:
    place = int(np.searchsorted(found.cdf_share, share))
    return float(found.cdf_s[min(place, len(found.cdf_s) - 1)])


def _cdf_checks(runs: Mapping[float, Found], spread: Sequence[float]) -> list[Check]:
    off = max(abs(f.settled_s - t) / t for t, f in runs.items())
    return [
        Check(
            name="the mean is close to the target in all four cases",
            paper="very close",
            here=f"at most {off:.1%} off",
            holds=off <= 0.1,
        ),
        Check(
            name="the variation around the mean grows with the target",
            paper="increases with the target",
            here=", ".join(f"{s:.2f}" for s in spread) + " s between p10 and p90",
            holds=all(a < b for a, b in pairwise(spread)),
        ),
    ]


def _cdf_picture(runs: Mapping[float, Found]) -> Figure:
    figure, axes = panels(1, height=4.0)
    for t, found in runs.items():
        line = axes[0].plot(found.cdf_s, found.cdf_share, label=f"T = {t:g} s")[0]
        axes[0].axvline(t, color=line.get_color(), linestyle=":", linewidth=1.0)
    axes[0].set_xlim(0.0, 6.0)
    axes[0].legend(fontsize=8)
    label(axes[0], x="latency (s)", y="share of results")
    figure.suptitle("Latency distribution at 200 queries (dissp paper fig. 7); dotted: targets")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dissp-uncontrolled",
        title="latency without a controller, 20 to 200 queries",
        source=f"{SOURCE}, fig. 5",
        run=uncontrolled,
    ),
    Experiment(
        name="dissp-targets",
        title="the latency controller at four targets, 20 to 200 queries",
        source=f"{SOURCE}, fig. 6",
        run=targets,
    ),
    Experiment(
        name="dissp-cdf",
        title="latency distribution under the controller at 200 queries",
        source=f"{SOURCE}, fig. 7",
        run=cdf,
    ),
)

"""pham-cost: batching makes a tuple cheaper as the rate rises (fig. 13, 14)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spillway.load import laws
from spillway.model import Target
from spillway.pictures import lines, panels
from spillway.report import Table
from spillway.workloads import bursts, curves
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.networks import make_setting
from spillway_lab.engine.run import simulate
from spillway_lab.experiments.outcomes import Floats, Outcome, numbers, outcome_of
from spillway_lab.experiments.pham.setting import SOURCE
from spillway_lab.experiments.pool import run_all
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES_PER_S = tuple(5_000.0 * k for k in range(1, 9))
LEVEL_S = 3.0  # the thesis stays 20 s on a level; nothing changes after the first second
PERIOD_S = 0.1
WEB_RATE_PER_S = 20_000.0
WEB_S = 15.0
OVERLOAD_PER_S = 35_000.0


@dataclass(frozen=True, kw_only=True)
class CostSpec:
    """Nothing is shed: a staircase of rates, or bursts."""

    bursts: bool
    seed: int
    level_s: float

    def __str__(self) -> str:
        return "bursts" if self.bursts else "staircase"


def run(spec: CostSpec) -> Outcome:
    setting = make_setting("qn-light")
    if spec.bursts:
        duration_s = WEB_S * spec.level_s / LEVEL_S
        times_s = bursts.web(spec.seed, duration_s, WEB_RATE_PER_S)
    else:
        duration_s = spec.level_s * len(RATES_PER_S)
        times_s = curves.arrivals_of(
            curves.levels(RATES_PER_S, spec.level_s), duration_s, spec.seed
        )
    plant = NetworkPlant(
        setting.network,
        times_s,
        target=Target(delay_s=2.0),
        engine=setting.engine,
        delay=setting.delay,
        seed=spec.seed,
    )
    return outcome_of(simulate(plant, laws.make("none"), duration_s, PERIOD_S))


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The staircase: the run, and what holds in the second half of every level."""

    stairs: Outcome
    level_s: float
    delays_s: list[float]
    costs_s: list[float]


def levels_of(stairs: Outcome, level_s: float) -> Levels:
    levels = range(len(RATES_PER_S))
    return Levels(
        stairs=stairs,
        level_s=level_s,
        delays_s=[_second_half(stairs.delay_s, k, level_s) for k in levels],
        costs_s=[_second_half(stairs.cost_s, k, level_s) for k in levels],
    )


def cost(setup: Setup, level_s: float = LEVEL_S) -> Report:
    specs = [CostSpec(bursts=b, seed=setup.seed, level_s=level_s) for b in (False, True)]
    stairs, bursty = run_all(run, specs, setup.progress)
    levels, follows = levels_of(stairs, level_s), _correlation(bursty)
    rows = [
        (rate, delay * 1e6, cost * 1e6)
        for rate, delay, cost in zip(RATES_PER_S, levels.delays_s, levels.costs_s, strict=True)
    ]
    columns = ("rate (tuples/s)", "response time (us)", "cost of a tuple (us)")
    title = "response time and cost by input rate (fig. 13)"
    return Report(
        experiment="pham-cost",
        setup=setup,
        results={
            "rate_per_s": list(RATES_PER_S),
            "response_time_s": numbers(levels.delays_s, 8),
            "cost_s": numbers(levels.costs_s, 10),
            "correlation_of_rate_and_cost": round(follows, 4),
        },
        checks=[*_response_checks(levels), _falling_cost(levels.costs_s, follows)],
        tables=[Table(title=title, columns=columns, rows=rows)],
        pictures={"": lambda: _picture(stairs, bursty)},
    )


def _second_half(values: Floats, level: int, level_s: float) -> float:
    start, stop = (int((level + part) * level_s / PERIOD_S) for part in (0.5, 1.0))
    return float(np.nanmean(values[start:stop]))


def _correlation(outcome: Outcome) -> float:
    """Of input rate and measured cost, over the control periods."""
    known = outcome.cost_s > 0.0
    return float(np.corrcoef(outcome.offered_per_s[known], outcome.cost_s[known])[0, 1])


def _response_checks(levels: Levels) -> list[Check]:
    lone_s, within = levels.delays_s[0], [r for r in RATES_PER_S if r < OVERLOAD_PER_S]
    return [
        Check(
            name="response time of a lone tuple",
            paper="120 us",
            here=f"{lone_s * 1e6:.0f} us at 5,000 tuples/s",
            holds=100e-6 <= lone_s <= 200e-6,
        ),
        Check(
            name="the system endures far more than one tuple per lone response time",
            paper="35,000 instead of about 8,300 tuples/s",
            here=f"{max(within):,.0f} within capacity, 1 / response time is {1.0 / lone_s:,.0f}",
            holds=levels.delays_s[5] < 0.1 and 1.0 / lone_s < 15_000.0,
        ),
        _constant_within(levels, levels.delays_s[: len(within)]),
        _growing_above(levels),
    ]


def _constant_within(levels: Levels, within_s: list[float]) -> Check:
    delay_s, level_s = levels.stairs.delay_s, levels.level_s
    drift = max(abs(_drift(delay_s, k, level_s)) / d for k, d in enumerate(within_s))
    return Check(
        name="on each level below 35,000 tuples/s the response time is higher but constant",
        paper="jumps, then remains constant",
        here=f"rises from {within_s[0] * 1e6:.0f} to {within_s[-1] * 1e6:.0f} us;"
        f" drifts by at most {drift:.0%} inside a level",
        holds=all(a < b for a, b in pairwise(within_s)) and drift < 0.25,
    )


def _growing_above(levels: Levels) -> Check:
    last = levels.stairs.delay_s[int((len(RATES_PER_S) - 1) * levels.level_s / PERIOD_S) :]
    grows = float(last[-1] - last[len(last) // 2])
    return Check(
        name="above it the response time grows without end",
        paper="goes up dramatically",
        here=f"by {grows:.2f} s in half a level at 40,000 tuples/s",
        holds=grows > 0.05 * levels.level_s / 2.0,
    )


def _falling_cost(costs_s: list[float], follows: float) -> Check:
    return Check(
        name="cost per tuple falls as the rate rises",
        paper="decreases significantly at peaks",
        here=f"{costs_s[0] * 1e6:.0f} us at 5,000/s, {costs_s[6] * 1e6:.0f} us at 35,000/s;"
        f" correlation {follows:.2f} under bursts",
        holds=costs_s[6] < 0.5 * costs_s[0] and follows < -0.5,
    )


def _drift(values: Floats, level: int, level_s: float) -> float:
    """Last quarter of a level minus the one before."""
    start, middle, stop = (int((level + p) * level_s / PERIOD_S) for p in (0.5, 0.75, 1.0))
    return float(np.nanmean(values[middle:stop]) - np.nanmean(values[start:middle]))


def _picture(stairs: Outcome, bursty: Outcome) -> Figure:
    figure, axes = panels(2, 2)
    response = {"response time": (stairs.time_s, stairs.delay_s)}
    lines(axes[0], response, y="response time (s)", title="staircase (fig. 13)", log=True)
    rate = {"input rate": (stairs.time_s, stairs.offered_per_s)}
    lines(axes[2], rate, y="rate (tuples/s)")
    price = {"cost of a tuple": (bursty.time_s, bursty.cost_s * 1e6)}
    lines(axes[1], price, y="cost (us)", title="bursts (fig. 14)")
    burst_rate = {"input rate": (bursty.time_s, bursty.offered_per_s)}
    lines(axes[3], burst_rate, y="rate (tuples/s)")
    figure.suptitle("Batching makes a tuple cheaper as the rate rises (thesis fig. 13, 14)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="pham-cost",
        title="batching: cost per tuple falls and response time jumps as the rate rises",
        source=f"{SOURCE}, fig. 13 and 14",
        run=cost,
    ),
)

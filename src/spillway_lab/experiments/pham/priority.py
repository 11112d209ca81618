"""pham-priority: an unfair scheduler (table 6, fig. 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spillway.load import laws
from spillway.pictures import label, panels, target_line
from spillway.report import Table
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.networks import BATCH_PRICE, make_setting, qn_complex
from spillway_lab.engine.operators import Node
from spillway_lab.engine.run import simulate
from spillway_lab.engine.settings import DelayOf
from spillway_lab.experiments.outcomes import Floats, Outcome, outcome_of
from spillway_lab.experiments.pham.setting import PERIOD_S, SOURCE, TARGET_S, Spec, plant_of
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What each law's monitor reads. The thesis's SEaMLeSS adjusts its headroom by the average over all
# outputs (4.1 s for low and nearly 0 for high priority average to the target), its ALoMa controls
# the worst case: the slowest query of a tuple.
READS: Mapping[str, DelayOf] = {
    "aloma": "every-tuple",
    "seamless": "output",
    "predictive": "every-tuple",
}
GROUPS = 12  # of 60: 228 operators with the same total cost
FAVOURED = 1.5  # the first half of the queries gets half as much time again
LONG_QUEUES = 1_000  # short ones make the favoured half wait for the other at the entry
DURATION_S = 120.0
PRIORITIES = ("high", "low")


@dataclass(frozen=True, kw_only=True)
class Halves:
    """A run, and the mean response time per period of each half of the queries."""

    outcome: Outcome
    delay_s: Mapping[str, Floats]
    mean_violation_s: Mapping[str, float]


class Tap:
    """Notes when the output operators of one half finish their tuples."""

    def __init__(self) -> None:
        self._done: list[tuple[list[int], float]] = []

    def listen(self, node: Node) -> None:
        work = node.work

        def noting(taken: list[int], now_s: float) -> list[int]:
            self._done.append((list(taken), now_s))
            return work(taken, now_s)

        node.work = noting  # type: ignore[method-assign]

    def delays(self, arrived_s: Floats) -> tuple[Floats, Floats]:
        """Completion times and delays of everything that passed."""
        counts = [len(ids) for ids, _ in self._done]
        done_s = np.repeat([time_s for _, time_s in self._done], counts).astype(np.float64)
        ids = np.concatenate([np.array(ids, dtype=np.int64) for ids, _ in self._done])
        return done_s, done_s - arrived_s[ids]


def run(spec: Spec) -> Halves:
    network = qn_complex(GROUPS, favoured=FAVOURED)
    setting = make_setting("qn-complex")
    engine = replace(
        setting.engine,
        activation_s=BATCH_PRICE * network.operators[0].cost_s,
        scheduler="weighted-round-robin",
        queue_tuples=LONG_QUEUES,
    )
    plant = plant_of(spec, replace(setting, network=network, engine=engine, delay=READS[spec.law]))
    taps = _taps(plant)
    manager = laws.make(spec.law, **dict(spec.settings))
    outcome = outcome_of(simulate(plant, manager, spec.duration_s, PERIOD_S))
    found = {half: tap.delays(plant.log.arrived_s) for half, tap in taps.items()}
    return Halves(
        outcome=outcome,
        delay_s={half: _by_period(*pair, spec.duration_s) for half, pair in found.items()},
        mean_violation_s={
            half: float(np.maximum(delays - TARGET_S, 0.0).mean())
            for half, (_, delays) in found.items()
        },
    )


def _taps(plant: NetworkPlant) -> dict[str, Tap]:
    taps = {half: Tap() for half in PRIORITIES}
    for node in plant.nodes:
        if not node.readers:
            taps["high" if node.operator.weight > 1.0 else "low"].listen(node)
    return taps


def _by_period(done_s: Floats, delays_s: Floats, duration_s: float) -> Floats:
    periods = int(duration_s / PERIOD_S)
    places = (done_s / PERIOD_S).astype(np.int64).clip(0, periods - 1)
    counts = np.bincount(places, minlength=periods)
    sums = np.bincount(places, weights=delays_s, minlength=periods)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def priority(setup: Setup, duration_s: float = DURATION_S) -> Report:
    specs = {law: Spec(law=law, seed=setup.seed, duration_s=duration_s) for law in READS}
    runs = run_named(run, specs, setup.progress)
    rows = [
        (
            law,
            found.mean_violation_s["low"],
            found.mean_violation_s["high"],
            100.0 * found.outcome.loss_ratio,
        )
        for law, found in runs.items()
    ]
    columns = ("load manager", "violation, low (s)", "violation, high (s)", "data loss (%)")
    title = f"weighted round robin, QN-complex with {19 * GROUPS} operators, S_c (table 6)"
    return Report(
        experiment="pham-priority",
        setup=setup,
        results={
            law: {
                "low_violation_s": round(found.mean_violation_s["low"], 4),
                "high_violation_s": round(found.mean_violation_s["high"], 4),
                "loss_ratio": round(found.outcome.loss_ratio, 5),
            }
            for law, found in runs.items()
        },
        checks=_checks(runs),
        tables=[Table(title=title, columns=columns, rows=rows)],
        pictures={"": lambda: _picture(runs)},
    )


def _checks(runs: Mapping[str, Halves]) -> list[Check]:
    aloma, seamless = runs["aloma"].mean_violation_s, runs["seamless"].mean_violation_s
    slowest_s = _settled_s(runs["aloma"].delay_s["low"])
    return [
        Check(
            name="under SEaMLeSS the low-priority queries violate the target, under ALoMa less",
            paper="2.12 s and 0.16 s",
            here=f"{seamless['low']:.2f} s and {aloma['low']:.2f} s",
            holds=seamless["low"] > 2.0 * aloma["low"],
        ),
        Check(
            name="ALoMa holds the worst-case response time at the target",
            paper="0.16 s average violation",
            here=f"{aloma['low']:.2f} s; the low-priority queries take {slowest_s:.2f} s",
            holds=aloma["low"] <= 0.2 * TARGET_S and slowest_s >= 0.5 * TARGET_S,
        ),
        Check(
            name="the high-priority queries never violate it",
            paper="0 s under both",
            here=f"{aloma['high']:.3f} s (ALoMa), {seamless['high']:.3f} s (SEaMLeSS)",
            holds=max(aloma["high"], seamless["high"]) < 0.01,
        ),
    ]


def _settled_s(delay_s: Floats) -> float:
    """In the second half. Far below the target more is dropped than has to be."""
    late = delay_s[delay_s.size // 2 :]
    return float(late[np.isfinite(late)].mean()) if np.isfinite(late).any() else 0.0


def _picture(runs: Mapping[str, Halves]) -> Figure:
    figure, axes = panels(len(runs))
    for axis, (law, found) in zip(axes, runs.items(), strict=True):
        for half, colour in zip(PRIORITIES, ("#2ca02c", "#d62728"), strict=True):
            axis.plot(
                found.outcome.time_s, found.delay_s[half], label=f"{half} priority", color=colour
            )
        target_line(axis, TARGET_S)
        axis.legend(fontsize=8, ncols=3)
        label(axis, x="time (s)", y="response time (s)", title=law)
    figure.suptitle("An unfair scheduler: half of the queries get 50 % more time (thesis fig. 18)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="pham-priority",
        title="an unfair scheduler: ALoMa holds the worst case, SEaMLeSS does not",
        source=f"{SOURCE}, table 6, fig. 18",
        run=priority,
    ),
)

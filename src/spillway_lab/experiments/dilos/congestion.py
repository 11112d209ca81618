"""dilos-congestion: a low class that blocks a high one through a shared segment (fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spillway.model import Decision, Measurement
from spillway.pictures import label, panels
from spillway.report import Table
from spillway_lab.engine.class_networks import CLASSES, HIGH, LOW, qn_a
from spillway_lab.engine.classes import ClassPlant
from spillway_lab.engine.network import Network
from spillway_lab.engine.run import Run, simulate_classes
from spillway_lab.experiments.dilos.setting import (
    CLASS_COLOURS,
    PERIOD_S,
    SOURCE,
    Spec,
    arrivals_of,
    managers_of,
)
from spillway_lab.experiments.outcomes import Floats, Outcome, outcome_of
from spillway_lab.experiments.pool import run_named
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DURATION_S = 15.0
QUEUE_TUPLES = 60  # of an operator; the thesis counts with 25 to 50 tuples in a shared queue
END_COST = 8.0  # of class 3 behind the segment, in selects: else it keeps up though overloaded
SHARED = ("select-1", "select-2")
NAMES = {"none": "no load manager", "separate": "a load manager per class"}


@dataclass(frozen=True, kw_only=True)
class SharedRun:
    classes: Mapping[str, Outcome]
    shared_queue: Floats  # tuples that wait for class 3 behind the shared segment, per period
    bound_tuples: float  # R = d / c of claim 1, for all shared queues together
    capacity_tuples: int  # of all shared queues


class QueueWatch:
    """A journal that notes how long the queues behind the shared segment are."""

    def __init__(self, plant: ClassPlant) -> None:
        index = plant.network.index
        self._nodes = [plant.nodes[index[f"{LOW}.{kind}.out"]] for kind in SHARED]
        self.lengths: list[float] = []

    def record(self, measurement: Measurement, decision: Decision) -> None:
        if measurement.class_name == LOW:
            self.lengths.append(float(sum(len(node.queue) for node in self._nodes)))


def run(spec: Spec) -> SharedRun:
    """Class 1 and class 3 share two sources and two selects; quotas stay where they are."""
    built = qn_a(sharing=True)
    network = _with_heavy_ends(built.network)
    engine = replace(built.engine, queue_tuples=QUEUE_TUPLES)
    plant = ClassPlant(
        network,
        arrivals_of(spec, network),
        CLASSES,
        engine=engine,
        delay="output",
        seed=spec.seed,
    )
    watch = QueueWatch(plant)
    found = simulate_classes(plant, managers_of(spec), spec.duration_s, PERIOD_S, journal=watch)
    return SharedRun(
        classes={name: outcome_of(found[name]) for name in CLASSES},
        shared_queue=np.array(watch.lengths),
        bound_tuples=_bound(found[LOW]),
        capacity_tuples=QUEUE_TUPLES * len(SHARED),
    )


def _with_heavy_ends(network: Network) -> Network:
    """Class 3 does something costly with what it gets from the shared segment."""
    ends = {f"{LOW}.{kind}.out" for kind in SHARED}
    operators = tuple(
        replace(op, cost_s=END_COST * op.cost_s) if op.name in ends else op
        for op in network.operators
    )
    return replace(network, operators=operators)


def _bound(low: Run) -> float:
    """R = d / c, with c the time that a tuple of the class takes: its cost over the class's share.

    The claim's proof multiplies tuples by their cost, as if the class had the whole machine. It
    has a share of it, which makes the bound tighter. Median over the control periods.
    """
    headroom = low.headroom[np.isfinite(low.headroom)]
    share = float(np.median(headroom)) if headroom.size else 1.0
    return CLASSES[LOW].target.delay_s * share / float(np.median(low.cost_s))


def congestion(setup: Setup, duration_s: float = DURATION_S) -> Report:
    specs = {
        "none": Spec(mode="none", seed=setup.seed, duration_s=duration_s),
        "separate": Spec(mode="separate", seed=setup.seed, duration_s=duration_s),
    }
    runs = run_named(run, specs, setup.progress)
    rows = [
        (
            NAMES[mode],
            *(1e3 * found.classes[c].mean_delay_s for c in CLASSES),
            found.shared_queue.max(),
        )
        for mode, found in runs.items()
    ]
    columns = ("mode", *(f"class {c} (ms)" for c in CLASSES), "longest shared queues (tuples)")
    return Report(
        experiment="dilos-congestion",
        setup=setup,
        results={mode: _summary(shared) for mode, shared in runs.items()},
        checks=_checks(runs),
        tables=[Table(title="a segment of class 1 feeds class 3", columns=columns, rows=rows)],
        pictures={"": lambda: _picture(runs)},
    )


def _summary(shared: SharedRun) -> dict[str, object]:
    return {
        **{
            name: {
                "loss_ratio": round(outcome.loss_ratio, 5),
                "mean_delay_s": round(outcome.mean_delay_s, 5),
            }
            for name, outcome in shared.classes.items()
        },
        "longest_shared_queue_tuples": int(shared.shared_queue.max()),
        "bound_tuples": round(shared.bound_tuples, 1),
    }


def _late(outcome: Outcome) -> float:
    """Mean delay in the last third of the run."""
    end_s = float(outcome.time_s[-1])
    return outcome.mean_delay_between(end_s * 2.0 / 3.0, end_s)


def _checks(runs: Mapping[str, SharedRun]) -> list[Check]:
    blocked, managed = runs["none"], runs["separate"]
    target_s = {name: c.target.delay_s for name, c in CLASSES.items()}
    return [
        Check(
            name="without load managers class 1's delay rises although it is not overloaded",
            paper="increases dramatically after a certain period",
            here=f"{1e3 * _late(blocked.classes[HIGH]):,.0f} ms in the last third"
            f" (target {1e3 * target_s[HIGH]:g} ms)",
            holds=_late(blocked.classes[HIGH]) > target_s[HIGH],
        ),
        Check(
            name="class 2, which shares nothing with class 3, is not affected",
            paper="not affected",
            here=f"{1e3 * _late(blocked.classes['2']):,.0f} ms",
            holds=_late(blocked.classes["2"]) < target_s["2"],
        ),
        Check(
            name="a load manager for class 3 ends the congestion",
            paper="the high class is not affected (claim 1)",
            here=f"class 1: {1e3 * _late(managed.classes[HIGH]):,.1f} ms and"
            f" {managed.classes[HIGH].loss_ratio:.2%} loss",
            holds=_late(managed.classes[HIGH]) < 0.5 * target_s[HIGH]
            and managed.classes[HIGH].loss_ratio == 0.0,
        ),
        Check(
            name="the shared queues stay below R = d / c (claim 1)",
            paper="no more than R",
            here=f"at most {managed.shared_queue.max():,.0f} tuples, R = "
            f"{managed.bound_tuples:,.0f}; without it {blocked.shared_queue.max():,.0f} of"
            f" {blocked.capacity_tuples:,}",
            holds=bool(managed.shared_queue.max() <= managed.bound_tuples),
        ),
    ]


def _picture(runs: Mapping[str, SharedRun]) -> Figure:
    figure, axes = panels(3, height=2.3)
    for axis, (mode, shared) in zip(axes, runs.items(), strict=False):
        for name, outcome in shared.classes.items():
            axis.plot(
                outcome.time_s,
                1e3 * outcome.delay_s,
                color=CLASS_COLOURS[name],
                label=f"class {name}",
                linewidth=1.0,
            )
            target_ms = 1e3 * CLASSES[name].target.delay_s
            axis.axhline(target_ms, color=CLASS_COLOURS[name], linestyle="--", linewidth=0.8)
        axis.set_yscale("log")
        label(axis, x="time (s)", y="response time (ms)", title=f"{NAMES[mode]}; targets dashed")
        axis.legend(fontsize=8, ncols=3)
    for mode, shared in runs.items():
        times_s = shared.classes[LOW].time_s
        axes[2].plot(times_s, shared.shared_queue, label=NAMES[mode], linewidth=1.0)
    label(axes[2], x="time (s)", y="shared queues (tuples)")
    axes[2].legend(fontsize=8)
    figure.suptitle("Class 3 blocks class 1 through a shared segment (thesis fig. 5)")
    return figure


EXPERIMENTS = (
    Experiment(
        name="dilos-congestion",
        title="an overloaded class blocks a higher one through a shared segment, or does not",
        source=f"{SOURCE}, fig. 5 and claim 1",
        run=congestion,
    ),
)

"""The setting of thesis section 6.2.1: three classes, three inputs, five ways to manage them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spillway.classes.dilos import Dilos
from spillway.load import laws
from spillway.ports import LoadManager
from spillway.workloads import curves
from spillway.workloads.bursts import counts_in
from spillway.workloads.curves import RateCurve, Seconds
from spillway_lab.engine.class_networks import (
    CLASSES,
    HIGH,
    LOW,
    RATE_PER_S,
    ClassNetwork,
    qn_a,
    qn_b,
)
from spillway_lab.engine.classes import ClassPlant, ClassScheduling, ServiceClass
from spillway_lab.engine.common_manager import CommonManager, CommonPlant
from spillway_lab.engine.network import Network, Stream
from spillway_lab.engine.run import simulate_classes
from spillway_lab.experiments.outcomes import Floats, Outcome, outcome_of
from spillway_lab.experiments.traces import web_trace

SOURCE = "Pham: thesis on workload management in DSMSs, Pittsburgh 2016"
PERIOD_S = 0.15
CYCLE_PERIODS = 10
CLASS_2_PER_S, CLASS_3_PER_S = (800.0, 1300.0), (300.0, 800.0)
# Class 1's ranges are only drawn in fig. 24, and last 50 s each.
CLASS_1_PER_S = ((300.0, 800.0), (900.0, 1400.0), (1200.0, 1700.0), (500.0, 1000.0))
LEVEL_S = 6.0
TRACE_PER_S = 330.0  # of a stream of class 1 in QN-B, on average
TRACE_BIN_S = 0.1

Mode = Literal["none", "common", "separate", "dilos", "dilos-sharing"]
MODES: Mapping[Mode, str] = {
    "none": "no load manager",
    "common": "common load manager",
    "separate": "separate load managers",
    "dilos": "DILoS",
    "dilos-sharing": "DILoS with sharing",
}
SYNERGY: tuple[Mode, ...] = ("separate", "dilos", "dilos-sharing")
CLASS_COLOURS = {"1": "#1f77b4", "2": "#2ca02c", "3": "#d62728"}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One way to manage the classes, on one network and input."""

    mode: Mode
    arrivals: Literal["sd-c", "sd-p", "sd-r"] = "sd-c"
    seed: int = 1
    duration_s: float = 12.0
    cycle_periods: int = CYCLE_PERIODS
    law: str = "predictive"
    batching: bool = True  # spare capacity is counted at full batches, not at the present ones
    lend: float = 1.0  # of class 1

    def __str__(self) -> str:
        return MODES[self.mode]


@dataclass(frozen=True, kw_only=True)
class ClassesRun:
    """One run: what every class got."""

    classes: Mapping[str, Outcome]
    quota_times_s: Floats
    quotas: Mapping[str, Floats]

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            name: {
                "loss_ratio": round(outcome.loss_ratio, 5),
                "mean_delay_s": round(outcome.mean_delay_s, 5),
            }
            for name, outcome in self.classes.items()
        }

    @property
    def total_loss(self) -> float:
        """Of all tuples offered to all classes."""
        offered = [outcome.offered_per_s.sum() for outcome in self.classes.values()]
        lost = [outcome.loss_ratio for outcome in self.classes.values()]
        return float(np.dot(offered, lost) / sum(offered))


def run(spec: Spec) -> ClassesRun:
    plant = plant_of(spec)
    found = simulate_classes(plant, managers_of(spec), spec.duration_s, PERIOD_S)
    times_s, quotas = zip(*plant.quota_history, strict=True)
    return ClassesRun(
        classes={name: outcome_of(found[name]) for name in CLASSES},
        quota_times_s=np.array(times_s),
        quotas={name: np.array([q[name] for q in quotas]) for name in CLASSES},
    )


def plant_of(spec: Spec, classes: Mapping[str, ServiceClass] = CLASSES) -> ClassPlant:
    built = network_of(spec)
    make = CommonPlant if spec.mode == "common" else ClassPlant
    return make(
        built.network,
        arrivals_of(spec, built.network),
        dict(classes) | {HIGH: replace(classes[HIGH], lend=spec.lend)},
        scheduling=ClassScheduling(
            policy=Dilos() if spec.mode in ("dilos", "dilos-sharing") else None,
            cycle_periods=spec.cycle_periods,
            batching=spec.batching,
        ),
        engine=built.engine,
        delay="output",
        seed=spec.seed,
    )


def network_of(spec: Spec) -> ClassNetwork:
    build = qn_b if spec.arrivals == "sd-r" else qn_a
    return build(sharing=spec.mode == "dilos-sharing")


def managers_of(spec: Spec) -> dict[str, LoadManager]:
    """A load manager per class, or one for all of them.

    The common one is ALoMa, as in the thesis: it alone needs no fair scheduler.
    """
    if spec.mode == "common":
        return dict.fromkeys(CLASSES, CommonManager(laws.make("aloma", headroom=1.0)))
    law = "none" if spec.mode == "none" else spec.law
    return {name: laws.make(law) for name in CLASSES}


def arrivals_of(spec: Spec, network: Network) -> dict[str, Seconds]:
    """All streams of a class have the same rates, and arrivals of their own."""
    by_class = rates_of(spec)
    found = {}
    for i, stream in enumerate(network.streams):
        seed = int(np.random.SeedSequence([spec.seed, i]).generate_state(1)[0])
        found[stream.name] = curves.arrivals_of(
            by_class[_pattern_of(stream, spec)], spec.duration_s, seed
        )
    return found


def _pattern_of(stream: Stream, spec: Spec) -> str:
    """Class 1's streams that class 3 can share have class 3's rates, shared or not."""
    shareable = stream.name.startswith((f"{HIGH}.select-1.", f"{HIGH}.select-2."))
    return LOW if shareable and spec.arrivals != "sd-c" else stream.class_name


def rates_of(spec: Spec) -> dict[str, RateCurve]:
    if spec.arrivals == "sd-c":
        return dict.fromkeys(CLASSES, curves.constant(RATE_PER_S, spec.duration_s))
    rng = np.random.default_rng([spec.seed, 6])
    periods = int(np.ceil(spec.duration_s / PERIOD_S))
    found = {
        "2": curves.levels(bounded_pareto(rng, np.tile(CLASS_2_PER_S, (periods, 1))), PERIOD_S),
        "3": curves.levels(bounded_pareto(rng, np.tile(CLASS_3_PER_S, (periods, 1))), PERIOD_S),
    }
    if spec.arrivals == "sd-r":
        trace = web_trace(spec.seed, spec.duration_s, TRACE_PER_S)
        found["1"] = curves.levels(counts_in(trace.times_s, TRACE_BIN_S) / TRACE_BIN_S, TRACE_BIN_S)
        return found
    level = (np.arange(periods) * PERIOD_S / LEVEL_S).astype(int) % len(CLASS_1_PER_S)
    ranges = np.array(CLASS_1_PER_S)[level]
    found["1"] = curves.levels(bounded_pareto(rng, ranges), PERIOD_S)
    return found


def bounded_pareto(rng: np.random.Generator, ranges: Floats) -> Floats:
    """One draw for each (low, high): Pareto with shape 1, cut to the range."""
    low, high = ranges[:, 0], ranges[:, 1]
    drawn: Floats = low / (1.0 - rng.random(len(ranges)) * (1.0 - low / high))
    return drawn

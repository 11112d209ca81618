"""The dissp paper's setting: T 250 ms, gain 0.1, averages over ten machines."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from spillway.load import laws
from spillway.model import Target
from spillway.workloads import curves
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.network import Network
from spillway_lab.engine.networks import dissp_queries, make_setting
from spillway_lab.engine.run import Run, simulate
from spillway_lab.experiments.outcomes import Floats, Outcome, outcome_of

SOURCE = "Kalyvianaki, Charalambous, Fiscato, Pietzuch: Overload management, 2012"
PERIOD_S = 0.25
GAIN = 0.1
TARGETS_S = (0.5, 1.0, 2.0, 3.0)
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

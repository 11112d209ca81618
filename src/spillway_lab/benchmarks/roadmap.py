"""`roadmap`: where to drop. A roadmap against uniform dropping at equal load, on both plants.

The network has a split: a cheap query that matters (`alerts`) and an expensive one that matters
little (`scores`) share a stream. Uniform dropping takes the same fraction of both; the roadmap
takes what its loss/gain ratios say.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from spillway.gate.roadmap import Drops, Inflow, Part, locations, roadmap
from spillway.model import Decision, KeepFraction, Measurement, Target
from spillway.ports import Cadence
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.benchmarks.roadmap_spark import TARGET, run_spark
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.network import Network, Operator, Stream
from spillway_lab.engine.run import simulate_classes
from spillway_lab.engine.settings import Engine

WEIGHTS = {"alerts": 10.0, "scores": 1.0}
OVERLOADS = (1.2, 2.0, 4.0, 10.0)
UTILISATION = 0.95  # of the engine after shedding: a queue that does not grow
CAPACITY_PER_S = 200.0
# Pipeline time and selectivity: the queries see what the shared filter lets through.
SHARED, ALERTS, SCORES = (1.0, 0.8), (1.0, 0.2), (8.0, 0.5)
_UNITS = SHARED[0] + SHARED[1] * (ALERTS[0] + SCORES[0])
UNIT_S = 1.0 / CAPACITY_PER_S / _UNITS


class Held:
    """One fraction for the whole run, decided before it; counts the pipeline time it was given."""

    cadence: ClassVar[Cadence] = "period"
    adapts: ClassVar[bool] = False

    def __init__(self, fraction: float) -> None:
        self.decision = Decision(action=KeepFraction(fraction=fraction), reason="decided before")
        self.busy_s = 0.0

    def decide(self, measurement: Measurement) -> Decision:
        self.busy_s += measurement.busy_s
        return self.decision


def split_network() -> Network:
    """A class for the shared part and one for each query: every class has a gate in front of it."""
    parts = {"gate": ("input", SHARED), "alerts": ("gate", ALERTS), "scores": ("gate", SCORES)}
    return Network(
        streams=(Stream(class_name="gate"),),
        operators=tuple(
            Operator(
                name=name,
                inputs=(source,),
                cost_s=units * UNIT_S,
                selectivity=selectivity,
                class_name=name,
            )
            for name, (source, (units, selectivity)) in parts.items()
        ),
    )


def inflow_of(network: Network, rate_per_s: float, weights: Mapping[str, float]) -> Inflow:
    """The simulator's network (one stream, no joins) as the roadmap sees it."""

    def part(index: int) -> Part:
        operator = network.operators[index]
        return Part(
            name=operator.name,
            cost_s=operator.cost_s,
            selectivity=operator.results_per_tuple,
            weight=weights.get(operator.name, 0.0),
            readers=tuple(part(reader) for reader in network.readers(operator.name)),
        )

    [first] = network.readers(network.streams[0].name)
    return Inflow(rate_per_s=rate_per_s, part=part(first))


def run(setup: BenchSetup) -> BenchReport:
    setup.progress("simulator", 0.0)
    sim = [row for overload in OVERLOADS for row in sim_case(overload, setup)]
    spark, details = run_spark(setup, WEIGHTS)
    return BenchReport(
        results={"sim": sim, "spark": spark},
        details=details,
        tables=(_locations_table(), _table("simulator", sim), _table(f"Spark, {TARGET}", spark)),
        failures=tuple(_failures(sim)),
    )


def sim_case(overload: float, setup: BenchSetup) -> list[dict[str, Any]]:
    rate_per_s = overload * CAPACITY_PER_S
    plan = roadmap([inflow_of(split_network(), rate_per_s, WEIGHTS)])
    shed_load = plan.load - UTILISATION
    rows = []
    for policy, drops in (("uniform", plan.uniform(shed_load)), ("roadmap", plan.drops(shed_load))):
        measured = _simulated(drops, rate_per_s, 30.0 if setup.quick else 300.0, setup.seed)
        predicted = plan.worth_per_s - drops.loss_per_s
        rows.append(
            {
                "policy": policy,
                "overload": overload,
                "rate_per_s": rate_per_s,
                "keep": dict(drops.keep),
                "predicted_worth_per_s": predicted,
                **measured,
            }
        )
    return rows


def _simulated(drops: Drops, rate_per_s: float, duration_s: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    count = rng.poisson(rate_per_s * duration_s)
    plant = NetworkPlant(
        split_network(),
        np.sort(rng.uniform(0.0, duration_s, count)),
        target=Target(delay_s=2.0),
        engine=Engine(max_shed=1.0),
        delay="output",
        seed=seed,
    )
    managers = {name: Held(1.0 - fraction) for name, fraction in drops.drop.items()}
    for name, manager in managers.items():  # in force from the first tuple on
        plant.actuate(name, manager.decision)
    runs = simulate_classes(plant, managers, duration_s, 1.0)
    worth = sum(weight * runs[name].outputs.sum() for name, weight in WEIGHTS.items())
    results = {name: float(runs[name].outputs.sum() / duration_s) for name in WEIGHTS}
    return {
        "worth_per_s": float(worth) / duration_s,
        "results_per_s": results,
        "load": sum(manager.busy_s for manager in managers.values()) / duration_s,
        "mean_delay_s": max(runs[name].mean_delay_s for name in WEIGHTS if results[name] > 0.0),
    }


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    """Policies are comparable only at equal load, and the engine must do what the plan says."""
    return [
        f"simulator, {row['overload']}x, {row['policy']}: {key} is {row[key]:.4g}, planned {wanted}"
        for row in rows
        for key, wanted in (("load", UTILISATION), ("worth_per_s", row["predicted_worth_per_s"]))
        if abs(row[key] / wanted - 1.0) > 0.05
    ]


def _locations_table() -> Table:
    places = locations([inflow_of(split_network(), CAPACITY_PER_S, WEIGHTS)])
    return Table(
        title=f"simulator: drop locations at {CAPACITY_PER_S:g} tuples/s",
        columns=("location", "load saved", "worth lost/s", "loss/gain"),
        rows=[(place.name, place.gain, place.loss_per_s, place.ratio) for place in places],
    )


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    return Table(
        title=title,
        columns=("overload", "policy", "worth/s", "predicted", "alerts/s", "scores/s", "delay (s)"),
        rows=[
            (
                row["overload"],
                row["policy"],
                row["worth_per_s"],
                row["predicted_worth_per_s"],
                *(row["results_per_s"][name] for name in WEIGHTS),
                row["mean_delay_s"],
            )
            for row in rows
        ],
    )


BENCHMARKS = (
    Benchmark(
        name="roadmap",
        title="where to drop: a roadmap against uniform dropping at equal load, both plants",
        run=run,
    ),
)

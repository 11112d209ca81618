"""Every experiment by name. Modules are imported only when they are asked for."""

from importlib import import_module

from spillway.errors import unknown_name
from spillway_lab.experiments.report import Experiment

MODULES: tuple[str, ...] = (
    "ctrl.identification",
    "ctrl.openloop",
    "ctrl.longterm",
    "ctrl.headroom",
    "ctrl.burstiness",
    "ctrl.target",
    "ctrl.period",
    "dissp.uncontrolled",
    "dissp.targets",
    "dissp.cdf",
    "pham.headroom",
    "pham.cost",
    "pham.environment",
    "pham.networks",
    "pham.priority",
    "pham.worst",
    "dilos.advantages",
    "dilos.pareto",
    "dilos.real",
    "dilos.cycle",
    "dilos.congestion",
    "managers",
    "fit.example",
    "fit.spread",
    "fit.topologies",
    "fugu.configurability",
    "fugu.workloads",
    "fugu.learning",
    "fugu.steps",
    "fugu.moves",
    "fugu.bridge",
    "unimico.moved_queries",
    "unimico.exact",
    "armadilos.day",
)  # each has EXPERIMENTS, a tuple of Experiment


def all_experiments() -> dict[str, Experiment]:
    found: dict[str, Experiment] = {}
    for module in MODULES:
        for experiment in import_module(f"spillway_lab.experiments.{module}").EXPERIMENTS:
            found[experiment.name] = experiment
    return found


def find(name: str) -> Experiment:
    experiments = all_experiments()
    if name not in experiments:
        raise unknown_name("experiment", name, experiments)
    return experiments[name]

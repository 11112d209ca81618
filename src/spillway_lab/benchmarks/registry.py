"""Every benchmark by name. Modules are imported only when they are asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from spillway.errors import unknown_name
from spillway.report import Progress, Table, silent


@dataclass(frozen=True, kw_only=True)
class BenchSetup:
    """What the user chose. `quick` shortens a run for a first look; figures come from full runs."""

    seed: int = 1
    quick: bool = False
    progress: Progress = silent


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    results: Any  # JSON
    tables: tuple[Table, ...] = ()
    details: Any = None  # JSON beside the results: calibration, intervals
    failures: tuple[str, ...] = ()  # what was asked for and not reached, or cannot be true


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    name: str
    title: str
    run: Callable[[BenchSetup], BenchReport]
    plants: tuple[str, ...] = ()  # what `--on` may name; most benchmarks have no choice


# Each module has BENCHMARKS, a tuple of Benchmark.
MODULES: tuple[str, ...] = (
    "decide",
    "estimates",
    "fit",
    "logs",
    "roadmap",
    "sampling",
    "session_profile",
    "simulator",
    "spark_overload",
    "gate_overhead",
    "isolation",
    "laws",
    "soak",
    "spark_step",
    "templates",
)


def all_benchmarks() -> Mapping[str, Benchmark]:
    found: dict[str, Benchmark] = {}
    for module in MODULES:
        for benchmark in import_module(f"spillway_lab.benchmarks.{module}").BENCHMARKS:
            found[benchmark.name] = benchmark
    return found


def find(name: str) -> Benchmark:
    benchmarks = all_benchmarks()
    if name not in benchmarks:
        raise unknown_name("benchmark", name, benchmarks)
    return benchmarks[name]

"""Every benchmark by name, what it is given and what it hands back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spillway.report import Progress, Table, silent
from spillway_lab.by_name import ByName


@dataclass(frozen=True, kw_only=True)
class BenchSetup:
    """What the user chose. `quick` shortens a run for a first look; figures come from full runs."""

    seed: int = 1
    quick: bool = False
    only: str | None = None  # one of the benchmark's parts
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
    parts: tuple[str, ...] = ()  # what `--only` may name


BENCHMARKS = ByName[Benchmark](
    kind="benchmark",
    package="spillway_lab.benchmarks",
    attribute="BENCHMARKS",
    modules=(
        "cold_start",
        "dead_letters",
        "decide",
        "estimates",
        "executors",
        "fit",
        "jobs.benchmark",
        "kafka_source.benchmark",
        "logs",
        "look",
        "migrate",
        "open_pages",
        "roadmap",
        "sampling",
        "session_profile",
        "simulator",
        "spark_overload",
        "gate_overhead",
        "isolation",
        "laws",
        "links",
        "soak",
        "spark_step",
        "templates",
    ),
)

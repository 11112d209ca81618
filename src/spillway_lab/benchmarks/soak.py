"""`soak`: 15 minutes of random bursts in all classes; nothing may grow, drift or starve."""

import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.model import Target
from spillway.report import Table
from spillway_lab.benchmarks.flow_runs import batches_of, figures_of, running, watch
from spillway_lab.benchmarks.memory import live_heap_mb, resident_mb
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup

SAMPLE_S = 5.0
USUAL_PER_S = {"gold": 10_000, "silver": 20_000, "bronze": 400_000}
BURST_FACTORS = (2.0, 15.0)
CLASSES = {
    "gold": {"priority": 6, "delay": "p95 3s"},
    "silver": {"priority": 3, "delay": "3s"},
    "bronze": {"priority": 1, "delay": "4s"},
}
LARGEST_GROWTH_MB = {"driver": 60.0, "planners": 60.0, "workers": 200.0, "heap": 80.0}
LARGEST_DRIFT = 1.3  # mean delay of the second half over the first, or the target if that is more
STARVED_AFTER_TARGETS = 4.0  # no batch of a class for so many times its target


@dataclass(frozen=True, kw_only=True)
class Lengths:
    warm_s: float
    soak_s: float


def random_rates(usual_per_s: int, seconds: float, rng: np.random.Generator) -> str:
    """A profile: calm for 5-30 s, a burst for 3-15 s, and so on."""
    at_s, steps = 0.0, []
    while at_s < seconds:
        calm_s, burst_s = rng.uniform(5, 30), rng.uniform(3, 15)
        factor = rng.uniform(*BURST_FACTORS)
        steps += [f"{at_s:.1f}:{usual_per_s}", f"{at_s + calm_s:.1f}:{usual_per_s * factor:.0f}"]
        at_s += calm_s + burst_s
    return ",".join([*steps, f"{at_s:.1f}:{usual_per_s}"])


def flow_of(seconds: float, seed: int) -> Flow:
    rng = np.random.default_rng(seed)
    streams = {
        f"{name}_events": {
            "source": "synthetic",
            "options": {"rate": random_rates(usual, seconds, rng), "seed": seed},
            "event_time": "event_time",
            "watermark": "5s",
        }
        for name, usual in USUAL_PER_S.items()
    }
    queries = {
        f"{name}_totals": {
            "class": name,
            "mode": "update",
            "sink": {"type": "noop"},
            "combine": False,
            "sql": "SELECT window(event_time, '10 seconds') AS period, key, avg(value) AS mean"
            f" FROM {name}_events GROUP BY window(event_time, '10 seconds'), key",
        }
        for name in CLASSES
    }
    return Flow.model_validate({"streams": streams, "classes": CLASSES, "queries": queries})


def run(setup: BenchSetup) -> BenchReport:
    lengths = Lengths(warm_s=30.0, soak_s=90.0) if setup.quick else Lengths(warm_s=90, soak_s=810)
    flow = flow_of(lengths.warm_s + lengths.soak_s, setup.seed)
    setup.progress("starting", 0.01)
    with running(flow) as application:
        setup.progress("warming up", 0.02)
        watch(application, time.time() + lengths.warm_s)
        from_s, heap_before = time.time(), live_heap_mb(application.spark)
        samples = _soak(application, lengths.soak_s, setup)
        to_s, heap_after = time.time(), live_heap_mb(application.spark)
        classes = {name: _class_figures(application, name, from_s, to_s) for name in CLASSES}
        restarts = {name: application.restarts(name) for name in flow.queries}
    return judged(classes, samples, heap_after - heap_before, restarts)


def judged(
    classes: dict[str, dict[str, Any]],
    samples: list[dict[str, float]],
    heap_growth_mb: float,
    restarts: dict[str, int],
) -> BenchReport:
    """What was seen of the classes and of the memory, and what is wrong with it."""
    growth = _growth_mb(samples) | {"heap": heap_growth_mb}
    return BenchReport(
        results={"classes": classes, "growth_mb": growth, "restarts": restarts},
        details={"memory_mb": samples[:: max(1, len(samples) // 20)]},
        tables=(_class_table(classes), _memory_table(samples, growth)),
        failures=tuple(_failures(classes, growth, restarts)),
    )


def _soak(application: Application, seconds: float, setup: BenchSetup) -> list[dict[str, float]]:
    samples = [resident_mb()]
    begin_s = time.time()
    while (done_s := time.time() - begin_s) < seconds:
        watch(application, time.time() + min(SAMPLE_S, seconds - done_s))
        samples.append(resident_mb())
        setup.progress("random bursts in all classes", 0.1 + 0.9 * done_s / seconds)
    return samples


def _class_figures(
    application: Application, name: str, from_s: float, to_s: float
) -> dict[str, Any]:
    middle_s = (from_s + to_s) / 2.0
    halves = [
        figures_of(application, name, *span).mean_delay_s
        for span in ((from_s, middle_s), (middle_s, to_s))
    ]
    ends_s = sorted(b.ended_s for b in batches_of(application, name, from_s, to_s))
    return {
        **asdict(figures_of(application, name, from_s, to_s)),
        "mean_delay_of_halves_s": halves,
        "batches_of_quarters": np.histogram(ends_s, bins=4, range=(from_s, to_s))[0].tolist(),
    }


def _growth_mb(samples: list[dict[str, float]]) -> dict[str, float]:
    """Median of the last fifth against the median of the second fifth, per role."""
    fifth = max(1, len(samples) // 5)
    roles = sorted({role for sample in samples for role in sample})
    return {
        role: median(s.get(role, 0.0) for s in samples[-fifth:])
        - median(s.get(role, 0.0) for s in samples[fifth : 2 * fifth] or samples)
        for role in roles
    }


def _failures(
    classes: dict[str, dict[str, Any]], growth: dict[str, float], restarts: dict[str, int]
) -> list[str]:
    problems = [
        f"{role} grew by {growth[role]:.0f} MB (at most {limit:.0f} MB are no leak)"
        for role, limit in LARGEST_GROWTH_MB.items()
        if growth.get(role, 0.0) > limit
    ]
    problems += [f"query {name} was restarted {n} times" for name, n in restarts.items() if n]
    for name, figures in classes.items():
        target_s = _target_s(name)
        first_s, second_s = figures["mean_delay_of_halves_s"]
        if first_s is None or second_s is None:
            problems.append(f"{name} delivered nothing in one half of the run")
            continue
        if second_s > LARGEST_DRIFT * max(first_s, target_s):
            problems.append(f"{name}'s mean delay drifted from {first_s:.2f} to {second_s:.2f} s")
        if figures["longest_gap_s"] > STARVED_AFTER_TARGETS * target_s:
            problems.append(f"{name} had no batch for {figures['longest_gap_s']:.1f} s")
    return problems


def _target_s(name: str) -> float:
    return Target.parse(str(CLASSES[name]["delay"])).delay_s


def _class_table(classes: dict[str, dict[str, Any]]) -> Table:
    columns = ("class", "target", "within", "shed", "mean of halves (s)", "p99 (s)", "longest gap")
    rows = [
        (
            name,
            CLASSES[name]["delay"],
            f"{f['within_target_ratio']:.1%}",
            f"{f['shed_tuples'] / max(1, f['offered_tuples']):.1%}",
            " / ".join("-" if d is None else f"{d:.2f}" for d in f["mean_delay_of_halves_s"]),
            f["p99_delay_s"],
            f"{f['longest_gap_s']:.1f} s",
        )
        for name, f in classes.items()
    ]
    return Table(title="classes under random bursts", columns=columns, rows=rows)


def _memory_table(samples: list[dict[str, float]], growth: dict[str, float]) -> Table:
    rows = [
        (role, f"{samples[-1][role]:.0f}" if role in samples[-1] else "", f"{grown:+.0f}")
        for role, grown in growth.items()
    ]
    return Table(title="memory", columns=("process", "at the end (MB)", "growth (MB)"), rows=rows)


BENCHMARKS = (
    Benchmark(
        name="soak",
        title="random bursts in all classes for 15 minutes: memory, drift and starvation",
        run=run,
        plants=("spark",),
    ),
)

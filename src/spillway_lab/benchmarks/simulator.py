"""How fast the simulator is, and that it gives what the slow reference gives."""

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from spillway.load import laws
from spillway.model import Target
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.microbatch import MicroBatchPlant, Query
from spillway_lab.engine.networks import Setting, make_setting
from spillway_lab.engine.run import simulate
from spillway_lab.engine.statistics import Floats

TARGET = Target(delay_s=2.0)
REFERENCE = Path(__file__).parents[3] / "tests" / "reference_sim.py"
CASES: dict[str, tuple[str, str, float]] = {  # network, load manager, times the sustained rate
    "chain": ("qn-light", "ctrl", 1.7),
    "complex": ("qn-complex", "aloma", 1.7),
    # Below capacity an activation finds a tuple or two: what counts there is its own price.
    "chain, idle half of the time": ("ctrl", "ctrl", 0.5),
    "complex, below capacity": ("qn-complex", "aloma", 0.6),
    "joins, mild overload": ("qn-long", "aloma", 1.3),
}


def run(setup: BenchSetup) -> BenchReport:
    """Executions (one tuple through one operator) per second of processor time, on one core."""
    results: dict[str, Any] = {}
    wanted_s = 0.5 if setup.quick else 4.0
    for i, (name, case) in enumerate(CASES.items()):
        setup.progress(name, i / (len(CASES) + 2))
        results[name] = _network_case(*case, setup.seed, wanted_s)
    setup.progress("micro-batch", len(CASES) / (len(CASES) + 2))
    results["micro-batch"] = _micro_batch_case(setup.seed, wanted_s)
    setup.progress("reference", (len(CASES) + 1) / (len(CASES) + 2))
    reference, failures = _against_reference(setup.seed)
    if reference is not None:
        results["reference"] = reference
    return BenchReport(results=results, tables=(_table(results),), failures=failures)


def _table(results: dict[str, Any]) -> Table:
    rows = [
        (
            name,
            figures["executions_per_s"] / 1e6,
            figures.get("tuples_per_activation", ""),
            figures.get("activation_us", ""),
        )
        for name, figures in results.items()
    ]
    columns = ("case", "M executions/s on one core", "tuples per activation", "us per activation")
    return Table(title="simulator", columns=columns, rows=rows)


def _network_case(
    network: str, manager: str, overload: float, seed: int, wanted_s: float
) -> dict[str, float]:
    """A short run first, to know how much virtual time takes long enough to be measured."""
    setting = make_setting(network)
    trial = _network_run(setting, manager, overload, seed, 5.0)
    duration_s = min(1000.0, 5.0 * max(1.0, wanted_s / trial["processor_s"]))
    return _network_run(setting, manager, overload, seed, duration_s)


def _network_run(
    setting: Setting, manager: str, overload: float, seed: int, duration_s: float
) -> dict[str, float]:
    rate_per_s = overload * setting.rate_per_s
    streams = setting.network.streams
    plant = NetworkPlant(
        setting.network,
        {s.name: _arrivals(rate_per_s, duration_s, seed + i) for i, s in enumerate(streams)},
        target=TARGET,
        engine=setting.engine,
        delay=setting.delay,
        seed=seed,
    )
    spent_s = _timed(lambda: simulate(plant, laws.make(manager), duration_s, 0.5))
    return {
        "executions": plant.executions,
        "activations": plant.activations,
        "processor_s": spent_s,
        "executions_per_s": plant.executions / spent_s,
        "tuples_per_activation": plant.executions / plant.activations,
        "activation_us": spent_s / plant.activations * 1e6,
        "virtual_s_per_s": duration_s / spent_s,
    }


def _micro_batch_case(seed: int, wanted_s: float) -> dict[str, float]:
    """One execution is one tuple through its batch."""
    duration_s = 100.0 * wanted_s
    arrivals = _arrivals(2000.0, duration_s, seed)
    plant = MicroBatchPlant(Query(), arrivals, target=TARGET, seed=seed)
    spent_s = _timed(lambda: simulate(plant, laws.make("predictive"), duration_s, 1.0))
    offered = plant.totals("default").offered_tuples
    return {
        "executions": offered,
        "processor_s": spent_s,
        "executions_per_s": offered / spent_s,
        "virtual_s_per_s": duration_s / spent_s,
    }


def _against_reference(seed: int) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The same overloaded network on both; without a checkout there is no reference."""
    reference = _load_reference()
    if reference is None:
        return None, ()
    setting, duration_s = make_setting("ctrl"), 20.0
    arrivals = _arrivals(1.5 * setting.rate_per_s, duration_s, seed)
    plant = NetworkPlant(setting.network, arrivals, target=TARGET, engine=setting.engine, seed=seed)
    slow = reference.ReferenceSim(setting.network, {"input": arrivals}, setting.engine, seed=seed)
    fast_s = _timed(lambda: plant.advance(duration_s))
    slow_s = _timed(lambda: slow.until(duration_s))
    completed = plant.totals("default").completed_tuples
    expected = slow.run.departed_s
    ids = list(expected)
    same = completed == len(ids) and bool(
        np.allclose(plant.log.departed_s[ids], list(expected.values()), rtol=0.0, atol=1e-9)
    )
    failures = () if same else ("the engine and the reference disagree: no figure counts",)
    figures = {
        "executions_per_s": slow.run.executions / slow_s,
        "engine_executions_per_s": plant.executions / fast_s,
        "times_as_fast": slow_s / fast_s,
        "same_result": same,
    }
    return figures, failures


def _load_reference() -> ModuleType | None:
    if not REFERENCE.is_file():
        return None
    spec = importlib.util.spec_from_file_location("reference_sim", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _arrivals(rate_per_s: float, duration_s: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0.0, duration_s, int(rate_per_s * duration_s)))


def _timed(work: Callable[[], object]) -> float:
    """Processor time: other processes on the machine do not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


BENCHMARKS = (
    Benchmark(
        name="simulator",
        title="operator executions per second, and the ratio to a slow reference",
        run=run,
    ),
)

"""Random operator networks, workloads and engines for the simulator's tests."""

from dataclasses import dataclass

import numpy as np

from spillway_lab.engine.network import Network, Operator, RangeWindow, Stream
from spillway_lab.engine.settings import Engine
from spillway_lab.engine.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Case:
    network: Network
    engine: Engine
    arrivals: dict[str, np.ndarray]
    decisions: tuple[tuple[float, float], ...]
    cost_trace: Steps
    background: Steps
    oldest: bool
    duration_s: float


def random_case(seed: int, *, class_names: tuple[str, ...] = ("default",)) -> Case:
    rng = np.random.default_rng(seed)
    duration_s = 3.0
    streams = tuple(Stream(name=f"s{i}") for i in range(rng.integers(1, 4)))
    sources = [
        Operator(name=f"from-{stream.name}-{k}", cost_s=_cost_s(rng), inputs=(stream.name,))
        for stream in streams
        for k in range(rng.integers(1, 3))
    ]
    operators = list(sources)
    for i in range(rng.integers(1, 12)):
        operators.append(_operator(rng, f"op{i}", [o.name for o in operators], class_names))
    return Case(
        network=Network(operators=tuple(operators), streams=streams),
        engine=_engine(rng),
        arrivals={
            stream.name: np.sort(rng.uniform(0.0, duration_s, rng.integers(0, 400)))
            for stream in streams
        },
        decisions=tuple((0.25 * k, float(rng.uniform(0.0, 1.3))) for k in range(1, 12)),
        cost_trace=_steps(rng, 0.5, 2.0),
        background=_steps(rng, 0.0, 0.6),
        oldest=bool(rng.integers(2)),
        duration_s=duration_s,
    )


def _cost_s(rng: np.random.Generator) -> float:
    return float(rng.choice([1e-5, 2e-4, 1e-3]))


def _operator(
    rng: np.random.Generator, name: str, known: list[str], class_names: tuple[str, ...]
) -> Operator:
    inputs = tuple(rng.choice(known, size=min(len(known), int(rng.integers(1, 3))), replace=False))
    kind = rng.choice(["pass", "filter", "rows", "split", "join"])
    return Operator(
        name=name,
        cost_s=_cost_s(rng),
        inputs=tuple(str(i) for i in inputs),
        selectivity={"filter": 0.6, "split": 1.4, "join": 0.8}.get(str(kind), 1.0),
        rows=int(rng.integers(2, 7)) if kind == "rows" else 1,
        window=RangeWindow(seconds=0.4, tuples=60.0) if kind == "join" else None,
        class_name=str(rng.choice(class_names)),
        weight=float(rng.choice([1.0, 1.5])),
    )


def _engine(rng: np.random.Generator) -> Engine:
    return Engine(
        headroom=float(rng.choice([0.8, 1.0])),
        batch_tuples=int(rng.choice([1, 7, 50])),
        activation_s=float(rng.choice([0.0, 3e-4])),
        overhead_s=float(rng.choice([0.0, 1e-4])),
        queue_tuples=int(rng.choice([3, 60, 500])),
        shed_cost_s=float(rng.choice([0.0, 2e-4])),
        scheduler=rng.choice(["round-robin", "weighted-round-robin", "highest-rate"]),
    )


def _steps(rng: np.random.Generator, low: float, high: float) -> Steps:
    times_s = np.sort(rng.uniform(0.0, 3.0, 3))
    values = rng.uniform(low, high, 3)
    return Steps(times_s=times_s.tolist(), values=values.tolist(), before=low)

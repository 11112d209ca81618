"""Random load histories with prices: what a coordinator costs beside nodes that never change.

Doing nothing keeps the nodes of the start; the best fixed number is chosen in hindsight, with the
queries placed by what they will ask for on average. Both shed as the coordinator's nodes do.
"""

from dataclasses import dataclass

import numpy as np

from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.prices import Prices
from spillway_lab.experiments.armadilos.classes import CLASSES
from spillway_lab.experiments.armadilos.cluster import (
    PRIORITIES,
    Cluster,
    balanced,
    share_out,
)
from spillway_lab.experiments.armadilos.reports import Reporter
from spillway_lab.experiments.armadilos.workload import Day, Floats

STEP_S = 60.0
REPORT_STEPS = 2
MOST_NODES = 16


@dataclass(frozen=True, kw_only=True)
class History:
    day: Day
    nodes: int  # at the start
    prices: Prices  # a node hour costs 1

    @property
    def settings(self) -> CoordinatorSettings:
        return CoordinatorSettings(
            patience_reports=2, idle_reports=5, max_nodes=MOST_NODES, prices=self.prices
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """In node hours. `fixed`: of the best number of nodes in hindsight."""

    coordinated: float
    nothing: float
    fixed: float

    @property
    def ratio(self) -> float:
        return self.coordinated / min(self.nothing, self.fixed)


def draw_history(rng: np.random.Generator, hours: float = 12.0) -> History:
    streams, queries = int(rng.integers(1, 7)), int(rng.integers(6, 25))
    steps = int(hours * 3600.0 / STEP_S)
    kind = SHAPES[int(rng.integers(len(SHAPES)))]
    rates = np.array([1000.0 * kind(rng, steps) for _ in range(streams)]).T
    if rng.random() < 0.5:  # all together
        rates = np.repeat(rates[:, :1], streams, axis=1)
    rates *= rng.normal(1.0, 0.04, size=rates.shape).clip(0.8, 1.2)
    load = rng.lognormal(np.log(0.2), 0.5, size=queries).clip(0.03, 0.6)
    stateless = rng.random(queries) < 0.3
    day = Day(
        step_s=STEP_S,
        rate_per_s=rates,
        stream=rng.integers(streams, size=queries),
        klass=rng.choice(len(CLASSES), size=queries, p=[c.share for c in CLASSES]),
        cost_s=load / 1000.0,
        parse_s=3e-5,
        window_s=np.where(stateless, 0.0, rng.uniform(10.0, 300.0, size=queries)),
    )
    cores = (rates[:, day.stream] * day.cost_s).sum(axis=1)
    most = min(MOST_NODES, int(np.ceil(1.5 * cores.max())))
    # What an hour of a node is worth that works for the lowest class, and a tuple of it.
    worth = float(np.exp(rng.uniform(np.log(2.0), np.log(30.0))))
    per_million = worth / 3600.0 * float(day.cost_s.mean()) * 1e6
    by_class = {c.name: per_million * c.priority for c in CLASSES}
    prices = Prices(per_million_tuples=per_million, per_node_hour=1.0, by_class=by_class)
    return History(day=day, nodes=int(rng.integers(1, most + 1)), prices=prices)


def judge(history: History, settings: CoordinatorSettings | None = None) -> Cost:
    fixed = [_fixed(history, nodes) for nodes in range(1, MOST_NODES + 1)]
    return Cost(
        coordinated=_coordinated(history, Coordinator(settings or history.settings)),
        nothing=fixed[history.nodes - 1],
        fixed=min(fixed),
    )


def _coordinated(history: History, coordinator: Coordinator) -> float:
    day = history.day
    cluster = Cluster(day, MOST_NODES, sheds=True, running=history.nodes)
    reporter = Reporter(cluster)
    for step in range(1, day.steps + 1):
        cluster.step()
        reporter.add(day.rate_per_s[step - 1])
        if step % REPORT_STEPS == 0:
            for action in coordinator.decide(reporter.take()).actions:
                cluster.actuate(action)
    shed = [float(cluster.shed[day.klass == k].sum()) for k in range(len(CLASSES))]
    return _price(history, shed, cluster.node_s)


def _fixed(history: History, nodes: int) -> float:
    """All steps at once: what the classes of each node ask for beyond it is shed."""
    day, classes = history.day, len(CLASSES)
    cell = balanced(day, nodes) * classes + day.klass
    of_cell = np.eye(nodes * classes)[cell]  # (queries, cells)
    work = (day.rate_per_s[:, day.stream] * day.cost_s) @ of_cell
    tuples = day.rate_per_s[:, day.stream] @ of_cell
    readers = np.zeros((day.rate_per_s.shape[1], nodes * classes))
    for stream, node in set(zip(day.stream.tolist(), (cell // classes).tolist(), strict=True)):
        here = (day.stream == stream) & (cell // classes == node)
        readers[stream, node * classes + day.klass[here].min()] = day.parse_s
    work = (work + day.rate_per_s @ readers).reshape(-1, classes)
    quota = np.tile(PRIORITIES / PRIORITIES.sum(), (len(work), 1))
    served = share_out(work, quota, 1.0)
    kept = np.divide(served, work, out=np.ones_like(work), where=work > 0.0)
    shed = (tuples.reshape(-1, classes) * (1.0 - kept)).sum(axis=0) * day.step_s
    return _price(history, shed.tolist(), nodes * day.steps * day.step_s)


def _price(history: History, shed: list[float], node_s: float) -> float:
    tuples = zip(shed, CLASSES, strict=True)
    prices = history.prices
    return sum(prices.shed(n, c.name) for n, c in tuples) + prices.node(node_s)


def _constant(rng: np.random.Generator, steps: int) -> Floats:
    return np.full(steps, rng.uniform(0.3, 1.5))


def _alternating(rng: np.random.Generator, steps: int) -> Floats:
    """High and low, with a period of 20 minutes to 4 hours."""
    period = int(np.exp(rng.uniform(np.log(1200.0), np.log(14400.0))) / STEP_S)
    high = (np.arange(steps) + rng.integers(period)) % period < period * rng.uniform(0.2, 0.8)
    return np.where(high, rng.uniform(1.0, 2.0), rng.uniform(0.1, 0.7))


def _steps(rng: np.random.Generator, steps: int) -> Floats:
    levels = rng.uniform(0.2, 2.0, size=int(rng.integers(2, 6)))
    return levels[np.minimum(np.arange(steps) * levels.size // steps, levels.size - 1)]


def _hump(rng: np.random.Generator, steps: int) -> Floats:
    at, width = rng.uniform(0.2, 0.8), rng.uniform(0.05, 0.3)
    shape = np.exp(-(((np.arange(steps) / steps - at) / width) ** 2))
    return np.asarray(rng.uniform(0.2, 0.6) + rng.uniform(0.5, 1.8) * shape)


def _bursts(rng: np.random.Generator, steps: int) -> Floats:
    rate = np.full(steps, rng.uniform(0.3, 0.8))
    for _ in range(rng.poisson(4)):
        start, length = rng.integers(steps), int(rng.uniform(5.0, 90.0))
        rate[start : start + length] += rng.uniform(0.3, 1.2)
    return rate


def _walk(rng: np.random.Generator, steps: int) -> Floats:
    return np.asarray(np.exp(np.cumsum(rng.normal(0.0, 0.02, size=steps)))).clip(0.2, 2.5)


SHAPES = (_constant, _alternating, _steps, _hump, _bursts, _walk)

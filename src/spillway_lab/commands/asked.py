"""The plant and the load that the options of `spillway simulate` ask for."""

from dataclasses import dataclass, replace
from pathlib import Path

from spillway.errors import unknown_name
from spillway.hosts.virtual.machine import DISTURBED, BatchCost
from spillway.model import Target
from spillway.workloads import named
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.microbatch import MicroBatchPlant, Query
from spillway_lab.engine.network import Network, load_coefficient
from spillway_lab.engine.networks import SETTINGS, make_setting
from spillway_lab.engine.run import SimulatedPlant
from spillway_lab.engine.statistics import Floats
from spillway_lab.workloads.files import replay

MICRO_BATCH = "micro-batch"
OVERLOAD = 1.5  # of what can be sustained, when no rate is asked for


@dataclass(frozen=True, kw_only=True)
class Asked:
    network: str  # a name in SETTINGS, or MICRO_BATCH
    workload: str  # a named one, or a file of arrival times
    rate_per_s: float | None
    duration_s: float
    target: Target
    cost_s: float | None  # pipeline time per tuple; None: as the network has it
    noisy: bool
    seed: int


def plant_of(asked: Asked) -> tuple[SimulatedPlant, float]:
    """The plant, and the rate that each of its streams is offered."""
    return _micro_batch(asked) if asked.network == MICRO_BATCH else _network(asked)


def _network(asked: Asked) -> tuple[SimulatedPlant, float]:
    if asked.network not in SETTINGS:
        raise unknown_name("network", asked.network, [*SETTINGS, MICRO_BATCH])
    setting = make_setting(asked.network)
    network, sustained_per_s = setting.network, setting.rate_per_s
    if asked.cost_s is not None:
        now_s = sum(load_coefficient(network, stream.name) for stream in network.streams)
        network = _scaled(network, asked.cost_s / now_s)
        sustained_per_s = sustained_per_s * now_s / asked.cost_s
    rate_per_s = asked.rate_per_s if asked.rate_per_s is not None else OVERLOAD * sustained_per_s
    arrivals = {
        stream.name: _arrivals(asked, rate_per_s, asked.seed + i)
        for i, stream in enumerate(network.streams)
    }
    plant = NetworkPlant(
        network,
        arrivals,
        target=asked.target,
        engine=setting.engine,
        delay=setting.delay,
        seed=asked.seed,
    )
    return plant, rate_per_s


def _scaled(network: Network, factor: float) -> Network:
    operators = tuple(replace(op, cost_s=op.cost_s * factor) for op in network.operators)
    return replace(network, operators=operators)


def _micro_batch(asked: Asked) -> tuple[SimulatedPlant, float]:
    cost = DISTURBED if asked.noisy else BatchCost(scanned_s=DISTURBED.scanned_s)
    if asked.cost_s is not None:
        cost = replace(cost, kept_s=asked.cost_s)
    rate_per_s = asked.rate_per_s if asked.rate_per_s is not None else OVERLOAD / cost.kept_s
    arrivals = _arrivals(asked, rate_per_s, asked.seed)
    plant = MicroBatchPlant(Query(cost=cost), arrivals, target=asked.target, seed=asked.seed)
    return plant, rate_per_s


def _arrivals(asked: Asked, rate_per_s: float, seed: int) -> Floats:
    workload, duration_s = asked.workload, asked.duration_s
    if workload in named.WORKLOADS:
        return named.make(workload, seed=seed, duration_s=duration_s, rate_per_s=rate_per_s)
    path = Path(workload)
    if not path.suffix:
        raise unknown_name("workload", workload, named.WORKLOADS)
    times_s = replay(path)
    # A file has a rate of its own: it is stretched to the wanted one.
    length_s = float(times_s[-1]) or 1.0
    times_s = times_s * (times_s.size / length_s / rate_per_s)
    return times_s[times_s < duration_s]

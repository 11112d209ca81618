"""The centralised optimum, the yardstick: one linear programme over the whole topology."""

from collections.abc import Mapping
from dataclasses import dataclass

from spillway.cluster.fit.decide import Rates
from spillway.cluster.fit.programme import Programme
from spillway.cluster.fit.topology import Output, Topology


@dataclass(frozen=True, kw_only=True)
class Optimum:
    score: float
    delivered: Mapping[str, float]


def optimum(topology: Topology, rates: Rates) -> Optimum:
    """The best that any set of drops can deliver."""
    programme = Programme(topology)
    flows = programme.solve(rates)
    delivered: dict[str, float] = {}
    for flow, (_, path) in enumerate(programme.paths, len(programme.admits)):
        if isinstance(path.to, Output):
            sent = float(path.selectivity) * float(flows[flow])
            delivered[path.to.query] = delivered.get(path.to.query, 0.0) + sent
    return Optimum(score=float(programme.value @ flows), delivered=delivered)

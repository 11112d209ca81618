"""What the nodes do with given rates, and what then arrives at the outputs.

Each node looks up its own table with the rates that it sees; nobody asks anybody. `follow` runs
the nodes' plans from the roots to the outputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spillway.cluster.fit.table import LocalPlan
from spillway.cluster.fit.topology import Arc, Node, Output, Port, Topology

Rates = Mapping[Port, float]


class Table(Protocol):
    """Either kind: the paper's rows, or mixtures of scenarios' rows."""

    def look_up(self, rates: Sequence[float], /) -> LocalPlan: ...


Tables = Mapping[str, Table]
Decide = Callable[[Node, tuple[float, ...]], LocalPlan]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Plans, loads (share of the capacity) and what every query delivers per second."""

    plans: Mapping[str, LocalPlan]
    loads: Mapping[str, float]
    offered: Mapping[Port, float]
    delivered: Mapping[str, float]
    score: float


def shed(topology: Topology, tables: Tables, rates: Rates) -> Outcome:
    """Every node follows its table."""
    return follow(topology, rates, lambda node, offered: tables[node.name].look_up(offered))


def shed_nothing(topology: Topology, rates: Rates) -> Outcome:
    """The offered load: what would be delivered, and needed, without any limit."""
    return follow(topology, rates, lambda node, _: keep_all(node))


def keep_all(node: Node) -> LocalPlan:
    return LocalPlan(
        input_keep=(1.0,) * len(node.inputs),
        path_keep=(1.0,) * len(node.paths),
        row=None,
        score=None,
    )


def follow(topology: Topology, rates: Rates, decide: Decide) -> Outcome:
    """Run decisions from the roots down: a parent's plan makes its children's rates."""
    topology.check_rates(rates)
    offered = dict(rates)
    plans: dict[str, LocalPlan] = {}
    loads: dict[str, float] = {}
    delivered: dict[str, float] = {}
    score = 0.0
    for node in topology.order:
        seen = tuple(offered[node.name, entry.name] for entry in node.inputs)
        plan = plans[node.name] = decide(node, seen)
        admitted = [rate * keep for rate, keep in zip(seen, plan.input_keep, strict=True)]
        busy = sum(float(e.cost) * a for e, a in zip(node.inputs, admitted, strict=True))
        for path, keep in zip(node.paths, plan.path_keep, strict=True):
            flow = admitted[node.position[path.source]] * keep
            busy += float(path.cost) * flow
            sent = flow * float(path.selectivity)
            if isinstance(path.to, Arc):
                offered[path.to.node, path.to.input] = sent
            else:
                delivered[path.to.query] = delivered.get(path.to.query, 0.0) + sent
                score += _worth(path.to, sent)
        loads[node.name] = _share(busy, float(node.capacity))
    return Outcome(plans=plans, loads=loads, offered=offered, delivered=delivered, score=score)


def _worth(output: Output, sent: float) -> float:
    return float(output.score_weight) * sent


def _share(busy: float, capacity: float) -> float:
    if capacity > 0:
        return busy / capacity
    return 0.0 if busy == 0 else float("inf")

"""The centralised optimum, the yardstick: one linear programme over the whole topology.

Variables: a_i, what each input admits, and f_b, what enters each path.
Maximise sum(weight x selectivity x f_b) over outputs, subject to f_b <= a_i for the paths of input
i, a_j <= selectivity x f_b for the path that feeds input j, a_i <= rate for inputs from outside,
and sum(cost x a) + sum(cost x f) <= capacity at every node. It covers any acyclic topology.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from spillway.cluster.fit.decide import Rates
from spillway.cluster.fit.table import Floats
from spillway.cluster.fit.topology import Output, Topology
from spillway.errors import SpillwayError


@dataclass(frozen=True, kw_only=True)
class Optimum:
    score: float
    delivered: Mapping[str, float]


class _Programme:
    """Rows and columns of the programme as they are collected."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.right: list[float] = []

    def at_most(self, terms: list[tuple[int, float]], right: float) -> None:
        row = len(self.right)
        self.entries += [(row, column, factor) for column, factor in terms]
        self.right.append(right)


def optimum(topology: Topology, rates: Rates) -> Optimum:
    """The best that any set of drops can deliver."""
    topology.check_rates(rates)
    admits = {
        (node.name, entry.name): column
        for column, (node, entry) in enumerate((n, e) for n in topology.nodes for e in n.inputs)
    }
    paths = [(node, path) for node in topology.nodes for path in node.paths]
    programme = _Programme()
    value = np.zeros(len(admits) + len(paths))
    upper = [rates.get(port) for port in admits] + [None] * len(paths)
    busy = {
        node.name: [(admits[node.name, e.name], float(e.cost)) for e in node.inputs]
        for node in topology.nodes
    }
    for flow, (node, path) in enumerate(paths, len(admits)):
        programme.at_most([(flow, 1.0), (admits[node.name, path.source], -1.0)], 0.0)
        busy[node.name].append((flow, float(path.cost)))
        if isinstance(path.to, Output):
            value[flow] = float(path.selectivity * path.to.score_weight)
        else:
            fed = admits[path.to.node, path.to.input]
            programme.at_most([(fed, 1.0), (flow, -float(path.selectivity))], 0.0)
    for node in topology.nodes:
        programme.at_most(busy[node.name], float(node.capacity))
    flows = _solve(value, programme, upper)
    delivered: dict[str, float] = {}
    for flow, (_, path) in enumerate(paths, len(admits)):
        if isinstance(path.to, Output):
            sent = float(path.selectivity) * float(flows[flow])
            delivered[path.to.query] = delivered.get(path.to.query, 0.0) + sent
    return Optimum(score=float(value @ flows), delivered=delivered)


def _solve(value: Floats, programme: _Programme, upper: list[float | None]) -> Floats:
    rows, columns, factors = zip(*programme.entries, strict=True)
    matrix = coo_array((factors, (rows, columns)), shape=(len(programme.right), value.size))
    scale = max(1.0, float(value.max()))
    answer = linprog(  # type: ignore[call-overload]  # its stubs know no sparse matrix
        -value / scale,
        A_ub=matrix.tocsr(),
        b_ub=programme.right,
        bounds=[(0.0, limit) for limit in upper],
        method="highs",
    )
    if answer.status != 0:
        raise SpillwayError(f"the linear programme has no answer: {answer.message}")
    return np.asarray(answer.x, dtype=np.float64)

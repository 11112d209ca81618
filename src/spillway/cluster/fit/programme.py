"""The linear programme over a topology, laid out once and solved for any rates (HiGHS).

Variables: a_i, what each input admits, and f_b, what enters each path.
Maximise sum(weight x selectivity x f_b) over outputs, subject to f_b <= a_i for the paths of input
i, a_j <= selectivity x f_b for the path that feeds input j, a_i <= rate for inputs from outside,
and sum(cost x a) + sum(cost x f) <= capacity at every node. It covers any acyclic topology.
"""

from typing import Any

import numpy as np

from spillway.cluster.fit.decide import Rates
from spillway.cluster.fit.table import Floats
from spillway.cluster.fit.topology import Output, Topology
from spillway.errors import SpillwayError


class Programme:
    """Columns: the inputs of all nodes, then the paths of all nodes, in the topology's order."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        ports = [(node.name, entry.name) for node in topology.nodes for entry in node.inputs]
        self.admits = {port: column for column, port in enumerate(ports)}
        self.paths = [(node, path) for node in topology.nodes for path in node.paths]
        self._entries: list[tuple[int, int, float]] = []
        self._right: list[float] = []
        self.value = np.zeros(len(ports) + len(self.paths))
        busy = {
            node.name: [(self.admits[node.name, e.name], float(e.cost)) for e in node.inputs]
            for node in topology.nodes
        }
        for flow, (node, path) in enumerate(self.paths, len(ports)):
            self._at_most([(flow, 1.0), (self.admits[node.name, path.source], -1.0)], 0.0)
            busy[node.name].append((flow, float(path.cost)))
            if isinstance(path.to, Output):
                self.value[flow] = float(path.selectivity * path.to.score_weight)
            else:
                fed = self.admits[path.to.node, path.to.input]
                self._at_most([(fed, 1.0), (flow, -float(path.selectivity))], 0.0)
        for node in topology.nodes:
            self._at_most(busy[node.name], float(node.capacity))
        self._matrix: Any = None  # made when it is asked for: it takes an extra

    def _at_most(self, terms: list[tuple[int, float]], right: float) -> None:
        row = len(self._right)
        self._entries += [(row, column, factor) for column, factor in terms]
        self._right.append(right)

    def solve(self, rates: Rates) -> Floats:
        """The best value of every variable for these rates from outside."""
        self.topology.check_rates(rates)
        upper = np.full(self.value.size, np.inf)
        for port, rate in rates.items():
            upper[self.admits[port]] = rate
        linprog, matrix = self._solver()
        scale = max(1.0, float(self.value.max()))
        answer = linprog(
            -self.value / scale,
            A_ub=matrix,
            b_ub=self._right,
            bounds=np.column_stack((np.zeros(upper.size), upper)),
            method="highs",
        )
        if answer.status != 0:
            raise SpillwayError(f"the linear programme has no answer: {answer.message}")
        return np.asarray(answer.x, dtype=np.float64)

    def _solver(self) -> tuple[Any, Any]:
        """HiGHS, and the left sides."""
        try:
            from scipy.optimize import linprog
            from scipy.sparse import coo_array
        except ImportError as error:
            raise SpillwayError(
                "tables for shedding across nodes need scipy: pip install 'spillway-spark[cluster]'"
                " where the coordinator runs, or say tables: none"
            ) from error
        if self._matrix is None:
            rows, columns, factors = zip(*self._entries, strict=True)
            shape = (len(self._right), self.value.size)
            self._matrix = coo_array((factors, (rows, columns)), shape=shape).tocsr()
        return linprog, self._matrix

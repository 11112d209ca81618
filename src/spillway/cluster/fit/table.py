"""The feasible input table of a node, and the look-up in it (paper sections 3.1 and 3.4)."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul

import numpy as np
import numpy.typing as npt

from spillway.errors import SpillwayError

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool]

TOLERANCE = 1e-9  # relative: rates that differ by less are the same rate


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """What a parent sees: feasible rates with their scores, and where nothing has to be shed.

    rates[i, k] is the rate of input i in row k; rows stand in descending order of score. A row
    promises: send at most these rates and at least this score is delivered, with no node
    overloaded here or downstream. For any offered rates r the best row with rates <= r scores at
    most `error` below the optimum for r.

    `limits` is the region in which no node is overloaded: all of limits @ r <= 1. One half space
    per node downstream, less those that another one implies; with one input that is one number.
    It is exact, where the paper asks for a row that covers r and so sheds between grid points.
    `values` is the score of one tuple of each input in that region. Scaling all rates down to its
    edge is always allowed, so a coarse table never does worse than shedding alike everywhere.
    """

    inputs: tuple[str, ...]
    rates: Floats  # inputs x rows
    scores: Floats
    limits: Floats  # half spaces x inputs
    values: Floats  # per input
    error: float

    @property
    def rows(self) -> int:
        return len(self.scores)

    def same_as(self, other: "PublishedTable") -> bool:
        """Whether a parent would notice any difference."""
        return (
            self.error == other.error
            and np.array_equal(self.rates, other.rates)
            and np.array_equal(self.scores, other.scores)
            and np.array_equal(self.limits, other.limits)
            and np.array_equal(self.values, other.values)
        )

    @cached_property
    def _limit_rows(self) -> list[list[float]]:
        return [list(map(float, row)) for row in self.limits]

    @cached_property
    def _value_list(self) -> list[float]:
        return list(map(float, self.values))

    @cached_property
    def _ascending(self) -> tuple[list[float], list[int]]:
        """One input: rates ascend with scores, so a binary search finds the best row."""
        order = np.argsort(self.rates[0], kind="stable")
        return list(map(float, self.rates[0][order])), list(map(int, order))

    def highest_load(self, rates: Sequence[float]) -> float:
        """Of the busiest node here or downstream, when nothing is shed: 1 is its capacity."""
        highest = 0.0
        for limit in self._limit_rows:
            load = 0.0
            for coefficient, rate in zip(limit, rates, strict=True):
                load += coefficient * rate if rate > 0.0 else 0.0
            highest = max(highest, load)
        return highest

    def best_row(self, rates: Sequence[float]) -> int:
        """The row of the highest score that asks for no more than `rates`."""
        if len(self.rates) == 1:
            ascending, order = self._ascending
            return order[bisect_right(ascending, rates[0] * (1.0 + TOLERANCE)) - 1]
        fits = self.rates[0] <= rates[0] * (1.0 + TOLERANCE)
        for column, rate in zip(self.rates[1:], rates[1:], strict=True):
            fits &= column <= rate * (1.0 + TOLERANCE)
        return int(fits.argmax())


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalPlan:
    """What one node drops: a share of each input, then a share of what enters each path."""

    input_keep: tuple[float, ...]
    path_keep: tuple[float, ...]
    row: int | None  # of the table; None: not overloaded after keeping `input_keep`
    score: float | None  # what is promised; None: everything is kept

    @property
    def sheds(self) -> bool:
        return any(keep < 1.0 for keep in (*self.input_keep, *self.path_keep))


@dataclass(frozen=True, kw_only=True)
class FeasibleInputTable(PublishedTable):
    """A node's own table: what it publishes, and the local plan of every row."""

    node: str
    flows: Floats  # paths x rows: tuples per second that enter each path
    sources: tuple[int, ...]  # path -> column of its input

    def look_up(self, rates: Sequence[float]) -> LocalPlan:
        """Nothing when not overloaded, else the best row and its local plan.

        When no row beats it, all inputs alike are cut down to where nothing is overloaded.
        """
        if len(rates) != len(self.rates):
            raise SpillwayError(
                f"node '{self.node}' got {len(rates)} rates: it has {len(self.rates)} inputs"
            )
        load = self.highest_load(rates)
        if load <= 1.0 + TOLERANCE:
            return self._alike(1.0, None)
        row = self.best_row(rates)
        alike = sum(map(mul, self._value_list, rates)) / load
        if alike > self.scores[row]:
            return self._alike(1.0 / load, alike)
        return self.plan_of(row, rates)

    def _alike(self, keep: float, score: float | None) -> LocalPlan:
        return LocalPlan(
            input_keep=(keep,) * len(self.inputs),
            path_keep=(1.0,) * len(self.sources),
            row=None,
            score=score,
        )

    def plan_of(self, row: int, rates: Sequence[float]) -> LocalPlan:
        """Drop down to a row, and then on its paths."""
        admitted = self.rates[:, row].tolist()
        flows = self.flows[:, row].tolist()
        return LocalPlan(
            input_keep=tuple(map(_keep, admitted, rates)),
            path_keep=tuple(
                _keep(f, admitted[i]) for f, i in zip(flows, self.sources, strict=True)
            ),
            row=row,
            score=float(self.scores[row]),
        )


def _keep(kept: float, offered: float) -> float:
    return 1.0 if kept >= offered else kept / offered

"""What one node does with its own outputs: split inputs and the local plans that serve them.

An input i with cost p_i splits into paths with costs c_b and values w_b (weight x selectivity).
Dropping on a path before dropping at the input pays when the path earns less per unit of time than
the input as a whole (paper section 3.2, "Handling Splits via Local Plans"). Order the paths by
w_b / c_b; the essential ones are the first k for which (w_1 + .. + w_k) / (p + c_1 + .. + c_k) is
largest. They are never dropped before the input is, so rates up to R = C / (p + c_1 + .. + c_k)
are useful. The rest, the spare paths, take what capacity is left, best first: a fractional
knapsack, solved exactly by that order.

An input that also feeds other nodes may be opened wide for them, so nothing there is essential.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import factorial, inf

import numpy as np

from spillway.cluster.fit.spread import (
    Axis,
    MaxError,
    Resolution,
    grid_points,
    spreads_of_error,
    spreads_of_size,
)
from spillway.cluster.fit.table import TOLERANCE, Floats
from spillway.cluster.fit.topology import Arc, Node, Output, Path, exact


@dataclass(frozen=True, kw_only=True, slots=True)
class SparePath:
    path: int
    column: int
    cost: float
    value: float

    @property
    def density(self) -> float:
        return self.value / self.cost if self.cost > 0 else inf


@dataclass(frozen=True, kw_only=True)
class OwnOutputs:
    """A node's own outputs: a grid of rates for their inputs, and who gets the capacity."""

    columns: tuple[int, ...]  # inputs with outputs here
    grid: Floats  # those columns x points, each feasible on its own
    always: Floats  # per input: time per tuple that no local plan saves
    earned: Floats  # per input: score per tuple of its essential paths
    essential: tuple[int, ...]  # paths that take all that their input admits
    spare: tuple[SparePath, ...]  # best first
    error: float

    def fill(self, admitted: Floats, left: Floats, price: float) -> list[tuple[SparePath, Floats]]:
        """Tuples per second into every spare path, given the capacity that is left."""
        flows = []
        for path in self.spare:
            flow = admitted[path.column]
            if path.density <= price:
                flow = np.zeros_like(flow)
            elif path.cost > 0:
                flow = np.minimum(flow, np.maximum(left, 0.0) / path.cost)
            left = left - path.cost * flow
            flows.append((path, flow))
        return flows


def own_outputs(node: Node, resolution: Resolution, peaks: Floats) -> OwnOutputs:
    """Grid, essential and spare paths of a node's own outputs; rates go up to `peaks`."""
    always = [entry.cost for entry in node.inputs]
    earned = [Fraction(0)] * len(node.inputs)
    essential: list[int] = []
    columns: list[int] = []
    axes: list[Axis] = []
    exposure: list[Fraction] = []
    for column, entry in enumerate(node.inputs):
        paths = [(b, p) for b, p in enumerate(node.paths) if p.source == entry.name]
        ending = sorted((x for x in paths if isinstance(x[1].to, Output)), key=_by_density)
        if not ending:
            continue
        count, upper = _useful(entry.cost, [p for _, p in ending], node.capacity)
        if not any(isinstance(p.to, Arc) for _, p in paths):
            for b, path in ending[:count]:
                essential.append(b)
                always[column] += path.cost
                earned[column] += _value(path)
        columns.append(column)
        value = sum((_plain_value(p) for _, p in ending), Fraction(0))
        if peaks[column] < upper:
            upper = exact(float(peaks[column]))
        axes.append(Axis(upper=upper, value=value))
        exposure.append(sum((_value(p) for _, p in ending), Fraction(0)))
    steps, grid = _finest_grid(node, axes, [always[i] for i in columns], resolution)
    return OwnOutputs(
        columns=tuple(columns),
        grid=grid,
        always=np.array([float(cost) for cost in always]),
        earned=np.array([float(value) for value in earned]),
        essential=tuple(essential),
        spare=_spare(node, set(essential)),
        error=float(
            sum(min(s, a.upper) * v for s, a, v in zip(steps, axes, exposure, strict=True))
        ),
    )


def _error(axes: list[Axis], steps: tuple[Fraction, ...], exposure: list[Fraction]) -> float:
    """What rounding down to the grid can cost: a step of every input, or all of its range."""
    lost = (min(s, axis.upper) * v for axis, s, v in zip(axes, steps, exposure, strict=True))
    return float(sum(lost))


def _value(path: Path) -> Fraction:
    """Score per tuple that enters the path."""
    return path.selectivity * path.to.score_weight if isinstance(path.to, Output) else Fraction(0)


def _plain_value(path: Path) -> Fraction:
    """The same without priority: priorities must not starve the lower ones of grid points."""
    return path.selectivity * path.to.weight if isinstance(path.to, Output) else Fraction(0)


def _by_density(numbered: tuple[int, Path]) -> float:
    path = numbered[1]
    return -float(_value(path) / path.cost) if path.cost else -inf


def _useful(cost: Fraction, ordered: list[Path], capacity: Fraction) -> tuple[int, Fraction]:
    """How many paths are essential, and the largest useful rate R of their input alone."""
    best, count, upper = Fraction(-1), 0, Fraction(0)
    value = Fraction(0)
    for number, path in enumerate(ordered, 1):
        cost += path.cost
        value += _value(path)
        if cost > 0 and value / cost >= best:
            best, count, upper = value / cost, number, capacity / cost
    return count, upper


def _spare(node: Node, essential: set[int]) -> tuple[SparePath, ...]:
    spare = [
        SparePath(
            path=b,
            column=node.position[path.source],
            cost=float(path.cost),
            value=float(_value(path)),
        )
        for b, path in enumerate(node.paths)
        if isinstance(path.to, Output) and b not in essential
    ]
    return tuple(sorted(spare, key=lambda path: -path.density))


def _finest_grid(
    node: Node, axes: list[Axis], always: list[Fraction], resolution: Resolution
) -> tuple[tuple[Fraction, ...], Floats]:
    """Spreads and feasible points, within the rows allowed; infeasible points do not count."""
    # about 1 point in m! is feasible; trying more than 24 times the rows would take too long
    most = resolution.rows * min(24, factorial(len(axes)))
    if isinstance(resolution, MaxError):
        steps = spreads_of_error(axes, resolution)
        if grid_points(axes, steps) <= most:
            grid = _grid(axes, steps, always, node.capacity)
            if grid.shape[1] <= resolution.rows:
                return steps, grid
    while most > resolution.rows:
        steps = spreads_of_size(axes, most)
        grid = _grid(axes, steps, always, node.capacity)
        if grid.shape[1] <= resolution.rows:
            return steps, grid
        most = most * 7 // 8
    steps = spreads_of_size(axes, resolution.rows)
    return steps, _grid(axes, steps, always, node.capacity)


def _grid(
    axes: list[Axis], steps: tuple[Fraction, ...], always: list[Fraction], capacity: Fraction
) -> Floats:
    """All combinations of multiples of the spreads that the capacity allows, exactly.

    Loads are compared in floating point; the few that come within the tolerance of the capacity
    are decided in fractions.
    """
    if not axes:
        return np.zeros((0, 0))
    counts = [int(axis.upper // s) + 1 for axis, s in zip(axes, steps, strict=True)]
    lines = [
        np.array([k * s.numerator / s.denominator for k in range(n)])
        for s, n in zip(steps, counts, strict=True)
    ]
    points = np.array(np.meshgrid(*lines, indexing="ij")).reshape(len(lines), -1)
    load = np.array([float(cost) for cost in always]) @ points
    limit = float(capacity)
    feasible = load <= limit
    near = np.flatnonzero(np.abs(load - limit) <= TOLERANCE * limit)
    if near.size:
        indices = np.array(np.unravel_index(near, counts)).T.tolist()
        unit = [cost * s for cost, s in zip(always, steps, strict=True)]
        for point, index in zip(near, indices, strict=True):
            feasible[point] = sum(k * u for k, u in zip(index, unit, strict=True)) <= capacity
    return points[:, feasible]

"""What runs on the simulated cluster: queries as chains of operators, and the rates they meet.

The query is FUGU's template: a filter on the sector of every tick, a windowed aggregate per
company, a sink. Arrays are (stages, queries) for operators and (steps, queries) for rates.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.errors import require

Floats = npt.NDArray[np.float64]

STAGES = ("filter", "aggregate", "sink")
FILTER, AGGREGATE, SINK = range(3)
RELATIVE_COST = (1.0, 12.0, 8.0)  # CPU per tuple; every tick meets the filter, few the rest
AGGREGATE_SELECTIVITY = 0.1  # results per tick of the sector
TUPLE_MB = 100e-6


@dataclass(frozen=True, kw_only=True)
class ClusterWorkload:
    """`offered[t, q]`: tuples per second at query q's source in step t; `passing[t, q]`: the
    share of them that is in its sector. `cost_s[stage]`: CPU seconds per tuple."""

    step_s: float
    offered: Floats
    passing: Floats
    window_s: Floats  # per query
    cost_s: Floats  # per stage

    @property
    def steps(self) -> int:
        return int(self.offered.shape[0])

    @property
    def queries(self) -> int:
        return int(self.offered.shape[1])

    @property
    def demand_cores(self) -> Floats:
        """(stages, steps, queries): what every operator wants."""
        matching = self.offered * self.passing
        rates = np.stack((self.offered, matching, matching * AGGREGATE_SELECTIVITY))
        wanted: Floats = rates * self.cost_s[:, None, None]
        return wanted


def sector_queries(
    sector_rates: Floats,
    *,
    step_s: float,
    queries: int,
    mean_cores: float,
    rng: np.random.Generator,
    windows_s: tuple[float, float] = (5.0, 60.0),
) -> ClusterWorkload:
    """Queries over one tick stream, each with a random sector and window.

    `sector_rates` is (steps, sectors), tuples per second. CPU costs are scaled so that all
    operators together want `mean_cores` on average.
    """
    require(queries >= 1, "number of queries", queries, "1 or more")
    require(mean_cores > 0.0, "mean load, in cores,", mean_cores, "above zero")
    sector = rng.integers(sector_rates.shape[1], size=queries)
    total = np.maximum(sector_rates.sum(axis=1, keepdims=True), 1e-9)
    workload = ClusterWorkload(
        step_s=step_s,
        offered=np.repeat(total, queries, axis=1),
        passing=sector_rates[:, sector] / total,
        window_s=rng.uniform(*windows_s, size=queries),
        cost_s=np.array(RELATIVE_COST),
    )
    scale = mean_cores / workload.demand_cores.sum(axis=(0, 2)).mean()
    return ClusterWorkload(
        step_s=step_s,
        offered=workload.offered,
        passing=workload.passing,
        window_s=workload.window_s,
        cost_s=workload.cost_s * scale,
    )

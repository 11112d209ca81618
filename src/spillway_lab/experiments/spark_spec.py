"""What a paper's run becomes on Spark. Importing this starts nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spillway.report import Progress
from spillway_lab.experiments.outcomes import Outcome

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SparkSpec:
    """One load manager under a load that is given second by second."""

    law: str
    offered: Floats  # tuples per second over the capacity, one value a second
    cost: Floats | None = None  # factor on the nominal cost, one value a second
    background: tuple[tuple[float, float], ...] = ()  # (from, share of the machine taken)
    settings: Mapping[str, float] = field(default_factory=dict)
    target_s: float = 2.0
    period_s: float = 1.0


def by_the_second(times_s: Floats, duration_s: float, capacity_per_s: float) -> Floats:
    """Arrivals of every second over what the paper's plant could take in one."""
    counts, _ = np.histogram(times_s, bins=np.arange(int(duration_s) + 1))
    shares: Floats = counts / capacity_per_s
    return shares


def run_on_spark(specs: Sequence[SparkSpec], progress: Progress) -> list[Outcome]:
    """One after the other in one session: two of them would share the machine."""
    from spillway_lab.experiments.on_spark import SparkPlantRuns  # starts Spark

    progress("warming up Spark", 0.0)
    plant = SparkPlantRuns()
    outcomes = []
    try:
        for number, spec in enumerate(specs):
            progress(spec.law, (number + 1) / (len(specs) + 1))
            outcomes.append(plant.run(spec))
    finally:
        plant.close()
    return outcomes

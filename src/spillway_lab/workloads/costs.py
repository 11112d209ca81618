"""Cost traces: how the price of a tuple changes over time."""

import numpy as np

from spillway.workloads.curves import RateCurve, Seconds

CTRL_COST_POINTS = (  # (second, factor on the nominal cost), after ctrl paper fig. 14
    (0.0, 1.0),
    (45.0, 1.0),
    (50.0, 1.6),  # the small peak
    (55.0, 1.0),
    (125.0, 1.0),
    (125.0, 2.6),  # the large peak starts with a jump
    (150.0, 1.0),
    (230.0, 1.0),
    (250.0, 1.8),  # the terrace is reached slowly ...
    (350.0, 1.8),
    (350.0, 1.0),  # ... and left at once
    (400.0, 1.0),
)
CTRL_COST_NOISE_SHAPE = 10.0  # of the Pareto noise under the peaks: its coefficient of variation
CTRL_COST_NOISE_S = 1.0  # is 11 %; a new value every second


def ctrl_cost_curve(duration_s: float = 400.0) -> RateCurve:
    """The peaks and the terrace alone: a factor on the nominal cost, stretched to `duration_s`."""
    points = np.array(CTRL_COST_POINTS)
    stretch = duration_s / CTRL_COST_POINTS[-1][0]
    return RateCurve(times_s=points[:, 0] * stretch, rates_per_s=points[:, 1])


def ctrl_cost_factors(seed: int, duration_s: float = 400.0) -> Seconds:
    """One factor a second: Pareto noise of mean 1 under the peaks and the terrace.

    The paper shows the heights only as a drawing: the ones used here are in CTRL_COST_POINTS.
    """
    count = int(np.ceil(duration_s / CTRL_COST_NOISE_S))
    rng = np.random.default_rng(seed)
    shape = CTRL_COST_NOISE_SHAPE
    noise = (1.0 + rng.pareto(shape, count)) * (shape - 1.0) / shape
    seconds: Seconds = (np.arange(count, dtype=np.float64) + 0.5) * CTRL_COST_NOISE_S
    factors: Seconds = ctrl_cost_curve(duration_s).at(seconds) * noise
    return factors

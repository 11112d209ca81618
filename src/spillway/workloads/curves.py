"""Rate curves: how many tuples a second arrive at each moment, and arrivals drawn from them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway.errors import require

Seconds = npt.NDArray[np.float64]

DISSP_STEPS_PER_S = (50.0, 100.0, 150.0, 100.0)  # then 50 again: one round trip takes 40 s
DISSP_STEP_S = 10.0
DISSP_SOURCES = 10
S_STEP_FIRST_S = 10.0
S_STEP_LEVEL_S = 40.0
SINE_PERIOD_S = 20.0


@dataclass(frozen=True, kw_only=True)
class RateCurve:
    """A rate that is linear between its points; two points at one time make a jump."""

    times_s: Seconds
    rates_per_s: Seconds

    def at(self, time_s: Seconds) -> Seconds:
        """The rate at these moments (after the jump, where there is one)."""
        rates: Seconds = np.interp(time_s, self.times_s, self.rates_per_s)
        return rates

    def scaled(self, factor: float) -> "RateCurve":
        return RateCurve(times_s=self.times_s, rates_per_s=self.rates_per_s * factor)


def arrivals_of(curve: RateCurve, duration_s: float, seed: int) -> Seconds:
    """One arrival for every unit of the curve's integral, at a random place inside that unit.

    The counts of every interval are those of the curve to within one tuple, so that a step is a
    step and noise comes from workloads that are about noise.
    """
    require(duration_s > 0.0, "duration of a workload, in seconds,", duration_s, "above zero")
    grid_s = _fine_grid(curve, duration_s)
    rates = curve.at(grid_s[:-1] + 1e-12), curve.at(grid_s[1:] - 1e-12)
    steps = np.diff(grid_s) * (rates[0] + rates[1]) / 2.0
    integral = np.concatenate(([0.0], np.cumsum(steps)))
    count = int(integral[-1] + 1e-9)
    places = np.arange(count) + np.random.default_rng(seed).random(count)
    times: Seconds = np.interp(places, integral, grid_s)
    return times


def levels(rates_per_s: npt.ArrayLike, level_s: float) -> RateCurve:
    """A staircase: each rate holds for `level_s`."""
    rates = np.asarray(rates_per_s, dtype=np.float64)
    edges_s = np.arange(len(rates) + 1) * float(level_s)
    return RateCurve(times_s=np.repeat(edges_s, 2)[1:-1], rates_per_s=np.repeat(rates, 2))


def constant(rate_per_s: float, duration_s: float) -> RateCurve:
    return levels([rate_per_s], duration_s)


def step(before_per_s: float, after_per_s: float, at_s: float, duration_s: float) -> RateCurve:
    """One jump at `at_s` (ctrl paper fig. 5 jumps at 10 s)."""
    return RateCurve(
        times_s=np.array([0.0, at_s, at_s, max(duration_s, at_s + 1.0)]),
        rates_per_s=np.array([before_per_s, before_per_s, after_per_s, after_per_s]),
    )


def ramp(first_per_s: float, last_per_s: float, duration_s: float) -> RateCurve:
    """A rate that grows all the time (ctrl paper fig. 8A)."""
    return RateCurve(
        times_s=np.array([0.0, duration_s]), rates_per_s=np.array([first_per_s, last_per_s])
    )


def sine(
    low_per_s: float, high_per_s: float, duration_s: float, period_s: float = SINE_PERIOD_S
) -> RateCurve:
    """Between two rates and back (ctrl paper fig. 7: 0 to 400 tuples/s)."""
    times_s = np.linspace(0.0, duration_s, max(2, int(duration_s / period_s * 64) + 1))
    swing = (1.0 - np.cos(2.0 * np.pi * times_s / period_s)) / 2.0
    return RateCurve(times_s=times_s, rates_per_s=low_per_s + (high_per_s - low_per_s) * swing)


def dissp_staircase(duration_s: float, sources: int = DISSP_SOURCES) -> RateCurve:
    """50-100-150-100-50 tuples/s from each source, a step every 10 s, for ever (dissp sect. 4)."""
    count = int(np.ceil(duration_s / DISSP_STEP_S))
    cycle = np.resize(np.array(DISSP_STEPS_PER_S), count)
    return levels(cycle * sources, DISSP_STEP_S)


def s_c(duration_s: float, within_per_s: float = 200.0, above_per_s: float = 350.0) -> RateCurve:
    """S_c of the thesis: within capacity for 10 s, then above it until the end."""
    return step(within_per_s, above_per_s, 10.0, duration_s)


def s_step(duration_s: float, first_per_s: float = 200.0, rise_per_s: float = 200.0) -> RateCurve:
    """S_step of the thesis: a higher level every 40 s after the first 10 s.

    The thesis does not print the levels; equal rises pass 1,000 tuples/s, where it saw the
    headroom fall.
    """
    count = 1 + int(np.ceil(max(0.0, duration_s - S_STEP_FIRST_S) / S_STEP_LEVEL_S))
    edges_s = np.concatenate(([0.0], S_STEP_FIRST_S + S_STEP_LEVEL_S * np.arange(count)))
    rates = first_per_s + rise_per_s * np.arange(count)
    return RateCurve(times_s=np.repeat(edges_s, 2)[1:-1], rates_per_s=np.repeat(rates, 2))


def _fine_grid(curve: RateCurve, duration_s: float) -> Seconds:
    """The curve's own points, and enough between them that a linear piece inverts well."""
    points = np.linspace(0.0, duration_s, max(2, int(duration_s * 20.0) + 1))
    inside = curve.times_s[(curve.times_s > 0.0) & (curve.times_s < duration_s)]
    return np.unique(np.concatenate((points, inside)))

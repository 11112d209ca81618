"""Every workload by name: simulator, command line and the synthetic log use the same ones."""

from collections.abc import Callable, Mapping

from spillway.errors import require, unknown_name
from spillway.workloads import bursts, curves
from spillway.workloads.curves import RateCurve, Seconds, arrivals_of

Workload = Callable[[int, float, float], Seconds]  # (seed, duration_s, rate_per_s) -> arrivals


def _shape(make: Callable[[float], RateCurve]) -> Workload:
    """A curve of mean about 1, scaled to the wanted rate."""

    def generate(seed: int, duration_s: float, rate_per_s: float) -> Seconds:
        return arrivals_of(make(duration_s).scaled(rate_per_s), duration_s, seed)

    return generate


def _unit_staircase(duration_s: float) -> RateCurve:
    return curves.dissp_staircase(duration_s, sources=1).scaled(1.0 / 100.0)


WORKLOADS: Mapping[str, Workload] = {
    "constant": _shape(lambda d: curves.constant(1.0, d)),
    "step": _shape(lambda d: curves.step(0.5, 1.5, d / 2.0, d)),
    "ramp": _shape(lambda d: curves.ramp(0.5, 1.5, d)),
    "sine": _shape(lambda d: curves.sine(0.0, 2.0, d)),
    "staircase": _shape(_unit_staircase),
    "s-c": _shape(lambda d: curves.s_c(d, 200.0 / 350.0, 1.0)),
    "s-step": _shape(lambda d: curves.s_step(d, 1.0, 1.0)),
    "pareto": bursts.pareto,
    "web": bursts.web,
}


def make(name: str, *, seed: int, duration_s: float, rate_per_s: float) -> Seconds:
    """Sorted arrival times in [0, duration_s).

    `rate_per_s` is the mean rate; for `s-c` the rate after the jump, for `s-step` the first level.
    """
    if name not in WORKLOADS:
        raise unknown_name("workload", name, WORKLOADS)
    require(duration_s > 0.0, "duration of a workload, in seconds,", duration_s, "above zero")
    require(rate_per_s > 0.0, "rate of a workload, in tuples per second,", rate_per_s, "above zero")
    return WORKLOADS[name](seed, duration_s, rate_per_s)

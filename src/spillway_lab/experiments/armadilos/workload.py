"""A day of a large cluster: queries of three classes over many streams, bursts and spikes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spillway_lab.experiments.armadilos.classes import CLASSES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Day:
    """Rates by step and stream; queries by class, stream, cost and window."""

    step_s: float
    rate_per_s: Floats  # (steps, streams)
    stream: Ints  # of each query
    klass: Ints  # of each query: index into CLASSES
    cost_s: Floats  # of each query: CPU per tuple, parsing aside
    parse_s: float  # CPU per tuple of a stream, once per node that hosts a query of it
    window_s: Floats  # of each query: 0 is stateless

    @property
    def steps(self) -> int:
        return int(self.rate_per_s.shape[0])

    @property
    def queries(self) -> int:
        return self.stream.size

    @property
    def offered_tuples(self) -> float:
        return float(self.rate_per_s.sum(axis=0)[self.stream].sum() * self.step_s)


def draw_day(
    rng: np.random.Generator, *, queries: int = 600, streams: int = 40, step_s: float = 5.0
) -> Day:
    """A quiet night and two humps by day; per stream a few bursts, and spikes of about a minute."""
    steps = int(DAY_S / step_s)
    hour: Floats = np.arange(steps, dtype=np.float64) * step_s / 3600.0
    base = 0.25 + 0.75 * np.exp(-(((hour - 10.5) / 2.5) ** 2)) + 0.6 * _hump(hour, 15.5, 3.0)
    rates = np.empty((steps, streams))
    for stream in range(streams):
        shifted = np.interp(hour - rng.normal(0.0, 0.7), hour, base, period=24.0)
        bursts = _bursts(rng, steps, step_s, per_day=3.0, lasting_s=(1200.0, 5400.0), by=1.2)
        spikes = _bursts(rng, steps, step_s, per_day=8.0, lasting_s=(20.0, 90.0), by=2.0)
        noise = rng.normal(1.0, 0.04, size=steps).clip(0.8, 1.2)
        rates[:, stream] = 1000.0 * shifted * (1.0 + bursts + spikes) * noise
    # No query outgrows a node in its worst burst: a query is not split here.
    load = rng.lognormal(np.log(0.2), 0.4, size=queries).clip(0.05, 0.35)
    stateless = rng.random(queries) < 0.3
    return Day(
        step_s=step_s,
        rate_per_s=rates,
        stream=rng.integers(streams, size=queries),
        klass=rng.choice(len(CLASSES), size=queries, p=[c.share for c in CLASSES]),
        cost_s=load / 1000.0,
        parse_s=3e-5,
        window_s=np.where(stateless, 0.0, rng.uniform(10.0, 300.0, size=queries)),
    )


def _hump(hour: Floats, at: float, width: float) -> Floats:
    return np.asarray(np.exp(-(((hour - at) / width) ** 2)))


def _bursts(
    rng: np.random.Generator,
    steps: int,
    step_s: float,
    *,
    per_day: float,
    lasting_s: tuple[float, float],
    by: float,
) -> Floats:
    extra = np.zeros(steps)
    for _ in range(rng.poisson(per_day)):
        start = int(rng.integers(steps))
        length = max(1, int(rng.uniform(*lasting_s) / step_s))
        shape = np.sin(np.linspace(0.0, np.pi, length + 2)[1:-1]) ** 0.5
        part = extra[start : start + length]
        part += by * rng.uniform(0.5, 1.0) * shape[: part.size]
    return extra

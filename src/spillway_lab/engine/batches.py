"""Micro-batches: what one costs, and the gate in front of a query that plans them."""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from spillway.errors import require
from spillway.gate.sampling import PPM, UniformRule, keep_mask
from spillway.model import Action, BatchRecord, KeepFraction
from spillway_lab.engine.state import Counts
from spillway_lab.engine.statistics import Floats, Ints

Policy = Literal["uniform", "fresh"]


@dataclass(frozen=True, kw_only=True)
class BatchCost:
    """How long a batch takes: o + c n + s m + q n^2, times drift and noise, plus a pause.

    n tuples are kept, m scanned. The drift 1 + warm_up exp(-t / warm_up_s) is the JVM getting
    faster; noise is lognormal with mean 1; pauses (garbage collection, the host) come at random
    while a batch runs.
    """

    fixed_s: float = 0.245  # o
    kept_s: float = 1e-3  # c
    scanned_s: float = 0.0  # s
    curvature_s: float = 0.0  # q
    noise: float = 0.0  # standard deviation of the logarithm
    pause_s: float = 0.0  # mean length of a pause (exponential)
    pauses_per_s: float = 0.0
    warm_up: float = 0.0
    warm_up_s: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            require(value >= 0.0, f"{name} of a micro-batch", value, "zero or above")
        require(self.fixed_s + self.kept_s > 0.0, "cost of a micro-batch", 0.0, "above zero")
        require(self.warm_up_s > 0.0, "warm_up_s of a micro-batch", self.warm_up_s, "above zero")

    def duration_s(
        self, kept: int, scanned: int, time_s: float, factor: float, rng: np.random.Generator
    ) -> float:
        """One batch that starts at `time_s`; always draws the same amount of random numbers."""
        work_s = self.kept_s * kept + self.scanned_s * scanned + self.curvature_s * kept**2
        drift = 1.0 + self.warm_up * float(np.exp(-time_s / self.warm_up_s))
        noise = float(np.exp(self.noise * rng.standard_normal() - self.noise**2 / 2.0))
        even_s = (self.fixed_s + factor * work_s) * drift * noise
        chance, length = rng.random(), rng.standard_exponential()
        paused = chance < -np.expm1(-self.pauses_per_s * even_s)
        return even_s + (self.pause_s * length if paused else 0.0)


# Every disturbance switched on. Plausible, not fitted: o is a windowed aggregate's on two cores.
DISTURBED = BatchCost(
    scanned_s=1e-5, curvature_s=5e-8, noise=0.1, pause_s=0.5, pauses_per_s=0.02, warm_up=0.5
)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query over a stream of its own."""

    name: str = "query"
    class_name: str = "default"
    cost: BatchCost = BatchCost()
    policy: Policy = "uniform"


class Gate:
    """One query: what waits, and the batch that runs."""

    def __init__(self, query: Query, index: int, times_s: Floats, seed: int) -> None:
        self.query, self.index, self.times_s = query, index, times_s
        self.free_since_s = 0.0
        self.decided: Action | None = None  # for the batch that is planned now
        self.pending: Ints = np.zeros(0, dtype=np.int64)  # positions, ascending
        self.running: Ints = self.pending
        self._rng = np.random.default_rng([seed, index])
        self._seed = seed
        self._offered = self._shed = self._completed = 0
        self._scanned = 0  # shed since the last batch: whoever sheds has to look
        self._started_s = 0.0

    @property
    def counts(self) -> Counts:
        admitted = self._offered - self._shed - self.pending.size
        return Counts(self._offered, admitted, self._shed, self._completed, self._completed)

    def arrive(self, now_s: float) -> None:
        stop = int(np.searchsorted(self.times_s, now_s, side="right"))
        if stop > self._offered:
            self.pending = np.concatenate([self.pending, np.arange(self._offered, stop)])
            self._offered = stop

    def next_arrival_s(self) -> float:
        return float(self.times_s[self._offered]) if self._offered < self.times_s.size else inf

    def shed(self, action: Action, max_shed: float) -> float:
        """Shed from what waits now; returns the fraction that was kept."""
        pending = self.pending
        if not pending.size:
            return 1.0
        wanted = (
            action.fraction * pending.size if isinstance(action, KeepFraction) else action.tuples
        )
        least = (1.0 - max_shed) * pending.size
        share = min(1.0, max(wanted, least) / pending.size)
        if share < 1.0:
            self.pending = self._choose(pending, share)
            self._shed += pending.size - self.pending.size
            self._scanned += pending.size - self.pending.size
        return share

    def _choose(self, pending: Ints, share: float) -> Ints:
        if self.query.policy == "fresh":
            return pending[pending.size - int(share * pending.size) :]
        rule = UniformRule(keep_ppm=int(share * PPM), seed=self._seed)
        start, stop = int(pending[0]), int(pending[-1]) + 1
        return pending[keep_mask(start, stop, rule, self.index)[pending - start]]

    def start(self, now_s: float, factor: float, speed: float) -> float:
        """Everything that waits goes into a batch; returns when it will end."""
        self.running, self.pending = self.pending, self.pending[:0]
        kept, scanned = self.running.size, self.running.size + self._scanned
        duration_s = self.query.cost.duration_s(kept, scanned, now_s, factor, self._rng)
        self._started_s, self._batch_scanned, self._scanned = now_s, scanned, 0
        return now_s + duration_s / speed

    def finish(self, now_s: float) -> BatchRecord:
        self._completed += self.running.size
        self.free_since_s = now_s
        record = BatchRecord(
            kept_tuples=self.running.size,
            scanned_tuples=self._batch_scanned,
            duration_s=now_s - self._started_s,
            ended_s=now_s,
        )
        self.running = self.running[:0]
        return record

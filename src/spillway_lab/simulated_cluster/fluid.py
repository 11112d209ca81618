"""The flow of tuples through operators on hosts: a fluid model, vectorised over operators.

Each host shares its CPU among its operators in proportion to the work they have. Tuples that
cannot be processed wait in the operator's queue and grow older; the mean age of what waits
travels along with the tuples, so the delay of a result contains every wait on its way. Within a
step, waiting follows M/G/1 processor sharing: service time / (1 - utilisation).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool]

SERVICE_S = 0.010  # one operator's service time on an idle host
HOP_S = 0.002  # between operators on different hosts
CORRECTIONS, DAMPING = 5, 0.6
BUSIEST = 0.98  # beyond, the queue itself carries the delay


@dataclass
class Totals:
    """Sums over one measurement period; (stages, queries) or (queries,)."""

    busy_s: Floats
    processed: Floats
    produced: Floats
    offered: Floats
    shed: Floats
    completed: Floats
    delay_s: Floats  # weighted by completed tuples
    seconds: float = 0.0

    @classmethod
    def zero(cls, stages: int, queries: int) -> "Totals":
        def per_operator() -> Floats:
            return np.zeros((stages, queries))

        def per_query() -> Floats:
            return np.zeros(queries)

        return cls(
            busy_s=per_operator(),
            processed=per_operator(),
            produced=per_operator(),
            offered=per_query(),
            shed=per_query(),
            completed=per_query(),
            delay_s=per_query(),
        )


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where every operator runs: arrays of (stages, queries), changed in place by moves."""

    host: Ints
    copy_on: Ints  # a second host that does the same work during a move, or -1
    paused: Bools

    @classmethod
    def on_first_host(cls, stages: int, queries: int) -> "Placement":
        shape = (stages, queries)
        return cls(
            host=np.zeros(shape, dtype=np.int64),
            copy_on=np.full(shape, -1, dtype=np.int64),
            paused=np.zeros(shape, dtype=np.bool),
        )


class Fluid:
    """Queues of all operators and the totals since the last `take`."""

    def __init__(self, stages: int, queries: int, hosts: int, cost_s: Floats) -> None:
        self._shape = (stages, queries)
        self._hosts = hosts
        self._cost_s = cost_s[:, None]
        self.queue = np.zeros(self._shape)
        self._age_s = np.zeros(self._shape)  # summed over the tuples in the queue
        self.totals = Totals.zero(stages, queries)

    def take(self) -> Totals:
        totals, self.totals = self.totals, Totals.zero(*self._shape)
        return totals

    def step(
        self,
        *,
        step_s: float,
        offered: Floats,
        keep: Floats,
        selectivity: Floats,
        placement: Placement,
        cores: Floats,
    ) -> Floats:
        """One step; returns what each operator processed.

        `offered` and `keep` are per query, `selectivity` per operator, `cores` per host.
        """
        host = placement.host
        admitted = offered * keep
        self._age_s += self.queue * step_s
        capacity_s = np.maximum(cores * step_s, 1e-12)
        may_run = np.where(placement.paused, 0.0, 1.0)
        share = np.ones(self._hosts)
        waiting, processed = self._flow(admitted, selectivity, may_run)
        used_s = self._work(processed, placement)
        # Work grows with the share, and downstream with its square or cube: damped corrections.
        for _ in range(CORRECTIONS if (used_s > capacity_s).any() else 0):
            share = np.minimum(1.0, share * (capacity_s / np.maximum(used_s, 1e-12)) ** DAMPING)
            waiting, processed = self._flow(admitted, selectivity, may_run * share[host])
            used_s = self._work(processed, placement)
        age_s = self._move_ages(waiting, processed, selectivity)
        self.queue = waiting - processed
        busy = np.minimum(used_s / capacity_s, BUSIEST)
        hops = (host[1:] != host[:-1]).sum(axis=0)
        service_s = (SERVICE_S / (1.0 - busy))[host].sum(axis=0) + HOP_S * hops
        self._add(step_s, offered, admitted, processed, selectivity, age_s + service_s)
        return processed

    def _flow(self, admitted: Floats, selectivity: Floats, taken: Floats) -> tuple[Floats, Floats]:
        """What waits at each operator in this step, and what it takes of it."""
        waiting = self.queue.copy()
        waiting[0] += admitted
        processed = np.empty_like(waiting)
        last = len(waiting) - 1
        for stage in range(last + 1):
            processed[stage] = waiting[stage] * taken[stage]
            if stage < last:
                waiting[stage + 1] += processed[stage] * selectivity[stage]
        return waiting, processed

    def _work(self, processed: Floats, placement: Placement) -> Floats:
        work_s = (processed * self._cost_s).ravel()
        used = np.bincount(placement.host.ravel(), weights=work_s, minlength=self._hosts)
        copy_on = placement.copy_on.ravel()
        copied = copy_on >= 0
        if copied.any():
            twice = copy_on[copied]
            used = used + np.bincount(twice, weights=work_s[copied], minlength=self._hosts)
        return used.astype(np.float64, copy=False)

    def _move_ages(self, waiting: Floats, processed: Floats, selectivity: Floats) -> Floats:
        """Carry ages along with the tuples; returns the mean age of what leaves the sinks."""
        mean_s = np.zeros(self._shape[1])
        for stage in range(self._shape[0]):
            if stage:
                self._age_s[stage] += processed[stage - 1] * selectivity[stage - 1] * mean_s
            mean_s = self._age_s[stage] / np.maximum(waiting[stage], 1e-12)
            self._age_s[stage] -= processed[stage] * mean_s
        return mean_s

    def _add(
        self,
        step_s: float,
        offered: Floats,
        admitted: Floats,
        processed: Floats,
        selectivity: Floats,
        delay_s: Floats,
    ) -> None:
        totals = self.totals
        totals.seconds += step_s
        totals.busy_s += processed * self._cost_s
        totals.processed += processed
        totals.produced += processed * selectivity
        totals.offered += offered
        totals.shed += offered - admitted
        totals.completed += processed[-1]
        totals.delay_s += processed[-1] * delay_s

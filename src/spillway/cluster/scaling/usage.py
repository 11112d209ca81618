"""What queries want of an application's cores, from their batches and the time that tasks took.

Task time is exact whatever a task does with it, compute or wait: with it a tuple's cost in core
seconds is known, and so is what of a batch no core can shorten. The gates' own o and c are batch
time: they depend on how many cores there were.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from spillway.model import Target

_MEMORY_S = 20.0  # costs are averaged over so long: they belong to the query, not to the load
_LEAST_USABLE = 0.5  # of a core: beyond it a target is missed for another reason
_SILENT_BATCHES = 3.0  # so many of its batches without one: nothing is offered


@dataclass(frozen=True, kw_only=True, slots=True)
class RanBatch:
    """A batch of a query that has ended, over all its gates."""

    query: str
    planned_s: float
    ended_s: float
    offered_tuples: int
    kept_tuples: int
    waiting_tuples: int  # that it left for later
    mean_delay_s: float
    task_s: float  # of all queries' tasks since the start, when it had ended
    cores: int  # that there were then
    cold: bool = False  # some of them had just come: its costs are not those of the query

    @property
    def busy_s(self) -> float:
        return max(0.0, self.ended_s - self.planned_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What a query was promised, and by which class."""

    class_name: str
    priority: int
    target: Target


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryUse:
    """A query now: what it is offered, and what a tuple takes of the cores."""

    name: str
    class_name: str = "default"
    priority: int = 1
    offered_rate_per_s: float
    keep_fraction: float = 1.0
    waiting_tuples: int = 0
    delay_s: float | None = None
    core_s_per_tuple: float
    usable: float = 1.0  # share of a core that its target leaves for tuples

    @property
    def wanted_cores(self) -> float:
        """With which its target just holds."""
        return self.offered_rate_per_s * self.core_s_per_tuple / self.usable

    @property
    def used_cores(self) -> float:
        """By what was admitted."""
        return self.wanted_cores * self.keep_fraction


@dataclass
class _Known:
    """Of a query: sums that fade, and its last batches."""

    last: RanBatch
    busy_s: float = 0.0
    kept: float = 0.0
    batches: float = 0.0
    rate_per_s: float | None = None


class Usage:
    """Told of every batch; says what each query wants.

    A query with the rate r, k core seconds a tuple and a fixed price o of a batch on n cores runs
    batches of D = o + r k D / n. Its target y holds while q D + D is within it (q: 1/2 for the
    mean, the quantile otherwise), so it wants

        n = r k / (1 - (1 + q) o / y)

    Task time is divided over the queries by batch time. What is left of the cores while batches
    run is the fixed price; of queries side by side each has its part of the cores.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._task_s = self._core_s = self._elapsed_s = 0.0
        self._last: RanBatch | None = None

    def heard(self, batch: RanBatch) -> None:
        before, self._last = self._last, batch
        known = self._known.setdefault(batch.query, _Known(batch))
        if before is None:
            return  # what its tasks took is not known
        counts = not batch.cold or self._task_s == 0.0  # something is better than nothing
        if counts:
            self._pass(before, batch)
        since_s = batch.planned_s - known.last.planned_s
        if since_s > 0.0:
            more = batch.waiting_tuples - known.last.waiting_tuples
            known.rate_per_s = max(0.0, batch.offered_tuples + more) / since_s
        known.last = batch
        if not counts:
            return
        known.busy_s += batch.busy_s
        known.kept += batch.kept_tuples
        known.batches += 1.0

    def uses(self, terms: Mapping[str, Terms], now_s: float) -> tuple[QueryUse, ...]:
        """Of the queries whose costs are known."""
        return tuple(
            self._use(name, given, self._known[name], now_s)
            for name, given in terms.items()
            if name in self._known and self._known[name].rate_per_s is not None
        )

    def _pass(self, before: RanBatch, now: RanBatch) -> None:
        """Time goes on: what was fades, what the tasks did meanwhile is added."""
        elapsed_s = max(0.0, now.ended_s - before.ended_s)
        stays = math.exp(-elapsed_s / _MEMORY_S)
        self._task_s = self._task_s * stays + max(0.0, now.task_s - before.task_s)
        self._core_s = self._core_s * stays + now.cores * elapsed_s
        self._elapsed_s = self._elapsed_s * stays + elapsed_s
        for known in self._known.values():
            known.busy_s *= stays
            known.kept *= stays
            known.batches *= stays

    def _use(self, name: str, terms: Terms, known: _Known, now_s: float) -> QueryUse:
        last, rate_per_s = known.last, known.rate_per_s or 0.0
        quiet_s = now_s - last.ended_s
        if quiet_s > _SILENT_BATCHES * max(last.busy_s, terms.target.delay_s):
            rate_per_s = 0.0
        kept = last.kept_tuples / last.offered_tuples if last.offered_tuples else 1.0
        return QueryUse(
            name=name,
            class_name=terms.class_name,
            priority=terms.priority,
            offered_rate_per_s=rate_per_s,
            keep_fraction=kept,
            waiting_tuples=last.waiting_tuples,
            delay_s=last.mean_delay_s if last.kept_tuples else None,
            core_s_per_tuple=self.core_s_per_tuple(name),
            usable=self.usable(name, terms.target),
        )

    def core_s_per_tuple(self, name: str) -> float:
        known, busy_s = self._known[name], self._busy_s
        if known.kept <= 0.0 or busy_s <= 0.0:
            return 0.0
        return self._task_s * known.busy_s / busy_s / known.kept

    def usable(self, name: str, target: Target) -> float:
        """Share of a core that the target leaves for tuples."""
        lost = (1.0 + target.age_share) * self.fixed_s(name) / target.delay_s
        return max(_LEAST_USABLE, 1.0 - lost)

    def fixed_s(self, name: str) -> float:
        """Of a batch: what no task did."""
        known, busy_s = self._known[name], self._busy_s
        if busy_s <= 0.0 or self._core_s <= 0.0 or self._elapsed_s <= 0.0:
            return 0.0
        beside = max(1.0, busy_s / self._elapsed_s)
        cores = self._core_s / self._elapsed_s
        idle = max(0.0, 1.0 - self._task_s * beside / (cores * busy_s))
        return idle * known.busy_s / known.batches

    @property
    def _busy_s(self) -> float:
        return sum(known.busy_s for known in self._known.values())

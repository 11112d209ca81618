"""The class scheduler's cycle: how much each class needs, who lends to whom, who can be slowed.

Every micro-batch has a fixed price o. A class that is not overloaded can be slowed down within its
delay target: fewer, longer batches pay the price less often, and others get the time. That is done
only while some class sheds or comes late; otherwise every class runs as fast as it can.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spillway.classes.capacity import ClassUsage, Policy
from spillway.model import Target

# The part of a target that slowing may use up. A mean forgives a batch that takes longer than
# usual, a p99 does not.
SLACK = {"mean": 0.8, "p95": 0.65, "p99": 0.5}

LEAST_TURN = 0.01  # of a batch-second per second: whoever asks gets a batch now and then
FIXED_AT_MOST = 0.5  # of its share: so much of the fixed price of its batches counts against it


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryLoad:
    """One query of a class: what it is offered and what its batches cost."""

    rate_per_s: float
    fixed_s: float  # o
    cost_s: float  # c, per tuple
    least_cost_s: float = 0.0  # what c is at least, as far as is known
    at_most: float = math.inf  # batch time per second that it can use; 1: one batch at a time
    overloaded: bool = False  # by what its own batches have shown
    gives_way: bool = False  # no more of its data may go: its delay does


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassLoad:
    name: str
    priority: int
    target: Target
    quota: float  # share of the machine that it has now
    original: float
    sheds: bool
    queries: tuple[QueryLoad, ...]
    lend: float = 1.0
    late: bool = False  # close to its target or beyond


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """What the cycle decided for one class."""

    quota: float
    interval_s: float  # shortest time between the starts of a query's batches; 0: none
    reason: str
    spared: bool = False  # sheds nothing, whatever its gates see


def longest_interval_s(query: QueryLoad, target: Target) -> float:
    """The interval D at which the query's batches still meet the target with slack k.

        wait + batch = q D + o + c r D = k y,  q = 1/2 for the mean, the quantile otherwise

    Zero when even the fixed price does not fit: then nothing is gained by waiting.
    """
    room_s = SLACK[target.statistic] * target.delay_s - query.fixed_s
    return max(0.0, room_s / (target.age_share + query.cost_s * query.rate_per_s))


def need(query: QueryLoad, target: Target) -> float:
    """Batch time per second that carries everything offered: o / D + c r.

    What a query cannot use is no need of its class.
    """
    return min(query.at_most, _load(query, target))


def turns(queries: Mapping[str, QueryLoad], target: Target, capacity: float) -> Mapping[str, float]:
    """A class's capacity divided over its queries by load, so that they lose alike.

    Nobody gets more than it can use; what that leaves goes to the others. While all needs fit,
    none has to be held back: then each may use what it can.
    """
    if sum(need(query, target) for query in queries.values()) <= capacity:
        return {name: query.at_most for name, query in queries.items()}
    loads = {name: _load(query, target) for name, query in queries.items()}
    found: dict[str, float] = {}
    # First whoever reaches its limit first, then the largest: the last are given the least turn.
    for name in sorted(loads, key=lambda n: (-loads[n] / queries[n].at_most, -loads[n])):
        rest = sum(value for other, value in loads.items() if other not in found)
        left = capacity - sum(found.values())
        part = left * loads[name] / rest if rest > 0.0 else left
        found[name] = min(queries[name].at_most, max(LEAST_TURN, part))
    return found


def _load(query: QueryLoad, target: Target) -> float:
    return _fixed(query, target) + query.cost_s * query.rate_per_s


def _fixed(query: QueryLoad, target: Target) -> float:
    """o / D, D no longer than the target allows; back to back where o does not fit."""
    interval_s = longest_interval_s(query, target)
    fixed = query.fixed_s / interval_s if interval_s > query.fixed_s else 1.0
    return min(fixed, query.fixed_s * query.rate_per_s)  # no more batches than tuples


def balance(
    classes: Sequence[ClassLoad], policy: Policy, machine: float, *, slow: bool = True
) -> Mapping[str, Balance]:
    """New quotas and intervals. `machine` is the batch time that it gives per second."""
    usages = [
        ClassUsage(
            name=c.name,
            priority=c.priority,
            capacity=c.quota,
            original=c.original,
            usage=sum(need(q, c.target) for q in c.queries) / max(c.quota * machine, 1e-9),
            lend=c.lend,
        )
        for c in classes
    ]
    somebody_lacks = slow and any(_lacks(c) for c in classes)
    lowest = min(c.priority for c in classes)
    quotas = policy(usages)
    decided = {}
    for c, usage in zip(classes, usages, strict=True):
        found = _for_class(c, usage, quotas[c.name], somebody_lacks)
        if c.priority > lowest and is_within_share(c, machine):
            found = replace(found, spared=True, reason=f"{found.reason}; sheds nothing")
        decided[c.name] = found
    return decided


def _lacks(c: ClassLoad) -> bool:
    """Whether time of others would help it: not where the fixed price alone breaks its target."""
    reachable = all(longest_interval_s(query, c.target) > 0.0 for query in c.queries)
    return c.sheds or (c.late and reachable)


def is_within_share(c: ClassLoad, machine: float) -> bool:
    """Whether nothing proves that the class's tuples take more than its own share can carry.

    Such a class sheds nothing: L < L_C0. When its batches take long all the same, others are in
    their way, or the fixed price is high; dropping its tuples would shorten neither, so the fixed
    price counts up to half of the share. A light class cannot learn c well, because its tuples
    hardly change how long a batch takes: what counts is the c that is certain. A query that is
    beyond what any share could give it is judged by its gate alone.
    """
    share = c.original * machine
    tuples = sum(query.least_cost_s * query.rate_per_s for query in c.queries)
    fixed = sum(_fixed(query, c.target) for query in c.queries)
    within = tuples + min(fixed, FIXED_AT_MOST * share) < share
    return within and not any(_is_beyond(query, c.target) for query in c.queries)


def _is_beyond(query: QueryLoad, target: Target) -> bool:
    """One batch after the other does not carry it: its tuples certainly fill more than that, or its
    own batches have shown that something has to go, and by all that is known it is too much."""
    if query.least_cost_s * query.rate_per_s >= query.at_most:
        return True
    if not query.overloaded:
        return False
    fixed = min(_fixed(query, target), FIXED_AT_MOST * query.at_most)
    return query.cost_s * query.rate_per_s + fixed >= query.at_most


def _for_class(c: ClassLoad, usage: ClassUsage, quota: float, somebody_lacks: bool) -> Balance:
    slowed = somebody_lacks and not c.sheds and not c.late and bool(c.queries)
    interval_s = min(longest_interval_s(q, c.target) for q in c.queries) if slowed else 0.0
    if interval_s < max((q.fixed_s for q in c.queries), default=0.0):
        interval_s = 0.0  # shorter than a batch alone: nothing to gain
    change = "keeps" if abs(quota - c.quota) < 1e-6 else "gets" if quota > c.quota else "lends"
    reason = f"uses {usage.usage:.0%} of {c.quota:.0%}, {change}: {quota:.0%}"
    if interval_s > 0.0:
        reason += f"; slowed to a batch every {interval_s:.2f} s within its target"
    return Balance(quota=quota, interval_s=interval_s, reason=reason)

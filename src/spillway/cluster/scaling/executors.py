"""Executors of one application as hosts: what they are, who asks for them, how a policy sees them.

A query's work spreads over all executors by itself, because its tasks do. So a query is cut into
small equal operators, as many on every executor: a policy that moves some of them to a new host
asks for an executor, and one that releases a host lets an executor go. Where tasks run then is
Spark's business.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from spillway.cluster.scaling.usage import QueryUse
from spillway.cluster.views import ClusterView, HostView, OperatorView, QueryView, Resources

PARTS = 60  # operators of a query on one executor: fine enough to pack like a fluid
_PLENTY_MB = 1e6  # memory and network are not what limits an executor here
_IDLE_PER_S = 1e12


@dataclass(frozen=True, kw_only=True, slots=True)
class Executor:
    """One that is registered and takes tasks."""

    name: str
    cores: int


class Resizer(Protocol):
    """More or fewer executors of one application. Requests are for a total and take their time."""

    def executors(self) -> Sequence[Executor]:
        """Those that take tasks now, the oldest first."""
        ...

    def resize(self, total: int, leaving: Collection[str]) -> None:
        """Let these go, and from now on want so many."""
        ...


def view_of(
    executors: Sequence[Executor], coming: int, queries: Sequence[QueryUse], now_s: float
) -> ClusterView:
    """`coming`: asked for, and not there yet."""
    total = sum(one.cores for one in executors)
    usual = max((one.cores for one in executors), default=1)
    capacity = _cores(float(usual))
    running = [
        HostView(
            name=one.name,
            capacity=_cores(float(one.cores)),
            operators=tuple(
                part for query in queries for part in _parts(query, one, len(executors), total)
            ),
        )
        for one in executors
    ]
    starting = [
        HostView(name=f"coming-{place}", capacity=capacity, state="starting")
        for place in range(coming)
    ]
    return ClusterView(
        time_s=now_s,
        hosts=(*running, *starting),
        queries=tuple(_query(query, executors) for query in queries),
        host_template=capacity,
    )


def _cores(cores: float) -> Resources:
    return Resources(cpu_cores=cores, memory_mb=_PLENTY_MB, network_mb_per_s=_PLENTY_MB)


def _parts(query: QueryUse, on: Executor, count: int, total: int) -> list[OperatorView]:
    """An executor's part of a query. It uses what is admitted, up to all that there is."""
    share = on.cores / total
    used = min(query.used_cores, float(total)) * share / PARTS
    wanted = query.wanted_cores * share / PARTS
    return [
        OperatorView(
            name=_name(query, on, place, count),
            queries=(query.name,),
            use=Resources(cpu_cores=used),
            # Each part sees the query's whole stream, and what it would take of it says the rate.
            true_rate_per_s=query.offered_rate_per_s / wanted if wanted > 0.0 else _IDLE_PER_S,
            queued_tuples=float(query.waiting_tuples),
        )
        for place in range(PARTS)
    ]


def _query(query: QueryUse, executors: Sequence[Executor]) -> QueryView:
    return QueryView(
        name=query.name,
        class_name=query.class_name,
        priority=query.priority,
        operators=tuple(
            _name(query, on, place, len(executors)) for on in executors for place in range(PARTS)
        ),
        offered_rate_per_s=query.offered_rate_per_s,
        keep_fraction=query.keep_fraction,
        delay_s=query.delay_s,
    )


def _name(query: QueryUse, on: Executor, place: int, count: int) -> str:
    """Other parts where there are more or fewer executors: each of them is another size then."""
    return f"{query.name}/{on.name}/{place} of {count}"

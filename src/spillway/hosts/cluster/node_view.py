"""A node as the cluster's decisions see it, from what its driver knows already.

A query is one operator here. What it wants of the node is batch time per second: each tuple's cost,
and the fixed price of as few batches as its target allows. That comes from what its gate has
learned, not from the processor: a query that waits for something else fills a node as well. A
node's capacity is therefore the number of batches that it runs side by side; where these share
cores, each takes longer, and what they want grows by that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spillway.classes.balance import FIXED_AT_MOST, QueryLoad, longest_interval_s
from spillway.cluster.fit.measured import QueryCost
from spillway.cluster.views import (
    ClassView,
    HostState,
    HostView,
    OperatorView,
    QueryView,
    Resources,
)
from spillway.gate.delays import delay_s
from spillway.hosts.cluster.messages import NodeState, Seen
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.model import Target

_RECENT_S = 10.0  # what delays and shed tuples are taken from
_COUNTED_S = 300.0  # what selectivities are taken from
_PLENTY_MB = 1e6  # memory and network are not what limits a node here
_STATES: dict[NodeState, HostState] = {
    "starting": "starting",
    "running": "running",
    "draining": "draining",
    "ended": "draining",
}


def views(
    name: str, cores: int, state: NodeState, application: Application | None, now_s: float
) -> tuple[HostView, tuple[QueryView, ...]]:
    """The node and its queries; `now_s` is wall time."""
    slots = max(1, cores if application is None else application.dispatcher.control.turns.slots)
    capacity = Resources(cpu_cores=float(slots), memory_mb=_PLENTY_MB, network_mb_per_s=_PLENTY_MB)
    if application is None:
        return HostView(name=name, capacity=capacity, state=_STATES[state]), ()
    look = _Look(application, now_s)
    host = HostView(
        name=name,
        capacity=capacity,
        operators=tuple(look.operators()),
        classes=tuple(look.of_class(class_name, slots) for class_name in application.classes),
        state=_STATES[state],
    )
    return host, tuple(look.query(query) for query in look.queries)


def as_queries(
    host: HostView, views: tuple[QueryView, ...], names: Mapping[str, str]
) -> tuple[HostView, tuple[QueryView, ...]]:
    """By the names of queries; what has none is nobody's query yet, only a load."""
    found = tuple(
        replace(view, name=names[view.name], operators=(names[view.name],))
        for view in views
        if view.name in names
    )
    operators = tuple(
        replace(each, name=names[each.name], queries=(names[each.name],))
        if each.name in names
        else each
        for each in host.operators
    )
    return replace(host, operators=operators), found


def costs(
    application: Application, names: Mapping[str, str], now_s: float
) -> tuple[QueryCost, ...]:
    """What other nodes' tables are made from, by the names of queries; nothing of a query whose
    costs are not known yet."""
    known = _Look(application, now_s).costs()
    return tuple(replace(cost, query=names[cost.query]) for cost in known if cost.query in names)


def told(
    application: Application | None, names: Mapping[str, str], busy: Collection[str], now_s: float
) -> dict[str, Any]:
    """The rest of a report: nothing while there is no application."""
    if application is None:
        return {}
    look = _Look(application, now_s)
    return {
        "costs": costs(application, names, now_s),
        "states": {run: application.states.of(run) for run in busy},
        "seen": {names[run]: look.seen(run) for run in look.queries if run in names},
    }


def load_cores(load: QueryLoad, target: Target) -> float:
    """Batch time per second: c r, and o as seldom as the target allows."""
    if load.rate_per_s <= 0.0:
        return 0.0
    interval_s = longest_interval_s(load, target)
    fixed = load.fixed_s / interval_s if interval_s > 0.0 else 1.0
    return load.rate_per_s * load.cost_s + min(1.0, fixed)


class _Look:
    """At everything once, because other threads go on."""

    def __init__(self, application: Application, now_s: float) -> None:
        self._now_s = now_s
        self._application, self.queries = application, dict(application.flow.queries)
        self._loads: dict[str, QueryLoad] = {}
        for class_name in application.classes:
            self._loads.update(application.dispatcher.loads(class_name))
        self._recent = {
            query: [b for b in application.delivered(query)[-200:] if b.ended_s > now_s - _RECENT_S]
            for query in self.queries
        }

    def operators(self) -> Iterator[OperatorView]:
        """Of those queries whose costs are known here: of the others the leader may know more."""
        for query, load in self._loads.items():
            if query not in self.queries:
                continue
            cores, progress = self._cores(query), self._application.progress.get(query)
            yield OperatorView(
                name=query,
                queries=(query,),
                use=Resources(cpu_cores=min(1.0, cores)),
                state_mb=0.0 if progress is None else progress.state_bytes / 2**20,
                true_rate_per_s=load.rate_per_s / cores if cores > 0.0 else 1e12,
            )

    def query(self, query: str) -> QueryView:
        given, load = self.queries[query], self._loads.get(query)
        offered, kept = _counts(self._recent[query])
        return QueryView(
            name=query,
            class_name=given.class_name,
            priority=self._application.classes[given.class_name].priority,
            operators=(query,),
            offered_rate_per_s=0.0 if load is None else load.rate_per_s,
            keep_fraction=kept / offered if offered else 1.0,
            delay_s=_mean_delay_s(self._recent[query]),
        )

    def seen(self, query: str) -> Seen:
        application, recent = self._application, self._recent[query]
        report = application.dispatcher.last_report(query)
        target = application.target(self.queries[query].class_name)
        delays = tuple(batch.delays for batch in recent if batch.kept_tuples > 0)
        found = Seen(
            delay_s=delay_s(delays, target),
            batch_s=sum(batch.duration_s for batch in recent) / len(recent) if recent else None,
            reason=application.states.reasons.get(query, ""),
        )
        if report is None:
            return found
        return replace(
            found,
            admitted_tuples=report.admitted_tuples,
            shed_tuples=report.shed_tuples,
            waiting_tuples=report.backlog.pending_tuples,
            waiting_s=report.backlog.oldest_age_s,
            fixed_s=0.0 if report.prices is None else report.prices.fixed_s,
        )

    def costs(self) -> Iterator[QueryCost]:
        application = self._application
        slots = application.dispatcher.control.turns.slots
        share = slots / max(1, len(self.queries))  # of the slots, for each when all are used
        for name, load in self._loads.items():
            if name not in self.queries or (sent := self._selectivity(name)) is None:
                continue
            given = self.queries[name]
            target = application.target(given.class_name)
            full = replace(load, rate_per_s=min(1.0, share) / max(load.cost_s, 1e-9))
            interval_s = max(longest_interval_s(full, target), load.fixed_s, 1e-9)
            fixed = load.fixed_s * min(self._batches_per_s(name), 1.0 / interval_s)
            yield QueryCost(
                query=name,
                cost_s=load.cost_s,
                fixed_cores=min(fixed, FIXED_AT_MOST * min(1.0, share)),
                selectivity=sent,
                offered_per_s=load.rate_per_s,
                priority=application.classes[given.class_name].priority,
                modelled=len(application.streams_of(name)) == 1,
            )

    def _batches_per_s(self, query: str) -> float:
        """No more often when the node is full: batches are longest then."""
        since_s = self._now_s - _COUNTED_S / 5.0
        recent = [b for b in self._application.delivered(query) if b.ended_s > since_s]
        return len(recent) / (_COUNTED_S / 5.0)

    def _selectivity(self, query: str) -> float | None:
        """Results per kept tuple, lately; None: nothing has been counted yet."""
        since_s = self._now_s - _COUNTED_S
        batches = [
            batch
            for batch in self._application.delivered(query)
            if batch.results is not None and batch.ended_s > since_s
        ]
        kept = sum(batch.kept_tuples for batch in batches)
        return sum(batch.results or 0 for batch in batches) / kept if kept else None

    def of_class(self, name: str, slots: int) -> ClassView:
        application = self._application
        own = [query for query, given in self.queries.items() if given.class_name == name]
        batches = [batch for query in own for batch in self._recent[query]]
        offered, kept = _counts(batches)
        return ClassView(
            name=name,
            priority=application.classes[name].priority,
            quota=application.dispatcher.control.owned.get(name, 0.0),
            load=sum(self._cores(query) for query in own) / slots,
            shed_tuples_per_s=(offered - kept) / _RECENT_S,
            delay_s=_mean_delay_s(batches),
            target_delay_s=application.target(name).delay_s,
        )

    def _cores(self, query: str) -> float:
        load = self._loads.get(query)
        if load is None:
            return 0.0
        return load_cores(load, self._application.target(self.queries[query].class_name))


def _counts(batches: Sequence[DeliveredBatch]) -> tuple[int, int]:
    offered = sum(batch.offered_tuples for batch in batches)
    return offered, sum(batch.kept_tuples for batch in batches)


def _mean_delay_s(batches: Sequence[DeliveredBatch]) -> float | None:
    kept = sum(batch.kept_tuples for batch in batches)
    return sum(b.mean_delay_s * b.kept_tuples for b in batches) / kept if kept else None

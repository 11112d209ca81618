"""The networks of `fit-live` in virtual time: the same gates, class control and look-ups.

Nodes run one after the other, parents first: what a node delivers is known when the next one
begins, because nothing flows back. Tables are those of the costs as they are, for the load of each
phase, and come into force a little after its begin, as they do when rates have to be noticed first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spillway.classes.balance import QueryLoad, longest_interval_s
from spillway.classes.control import ClassTerms
from spillway.cluster.fit.measured import Network, QueryCost, rates_of, topology_of
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.scenarios import scenario_tables
from spillway.gate.options import GateOptions
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.looking_up import LookingUp
from spillway.hosts.cluster.table_records import TableGiven, given_of
from spillway.hosts.virtual.host import Finished, VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import TraceLog
from spillway.model import Target
from spillway_lab.experiments.fit.live_networks import DELAY, LiveNetwork, LiveQuery

FIXED_S = 0.5  # of a batch
NOISE = 0.15
NOTICED_S = 8.0
_DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Phase:
    begin_s: float
    end_s: float
    load: float  # of the first node
    with_tables: bool


@dataclass(frozen=True, kw_only=True)
class VirtualRun:
    """Every query's batches, and what could be delivered in each phase."""

    finished: Mapping[str, Sequence[Finished]]
    best: Mapping[Phase, float]


def run(network: LiveNetwork, phases: Sequence[Phase], seed: int) -> VirtualRun:
    costs = {phase: _costs(network, phase.load) for phase in phases}
    wiring = _wiring(network)
    topologies = {phase: topology_of(wiring, found) for phase, found in costs.items()}
    rates = {phase: rates_of(topologies[phase], costs[phase]) for phase in phases}
    first = topologies[phases[0]]
    fed = {
        node.name: tuple(n for n in node.position if (node.name, n) in first.feeders)
        for node in first.nodes
    }
    given: dict[Phase, dict[str, TableGiven]] = {}
    for phase in phases:
        rng = np.random.default_rng(seed)
        made = scenario_tables(topologies[phase], rates[phase], rng)
        given[phase] = {n: given_of(table, np.inf, fed[n]) for n, table in made.items()}
    finished: dict[str, Sequence[Finished]] = {}
    for number, node in enumerate(first.order):
        own = [query for query in network.queries if query.node == node.name]
        logs = {query.name: _log(query, network, phases, finished) for query in own}

        def table_at(now_s: float, name: str = node.name) -> TableGiven | None:
            at = [p for p in phases if p.begin_s + NOTICED_S <= now_s]
            now = next(p for p in phases if now_s < p.end_s)
            return given[at[-1]][name] if at and now.with_tables else None

        host = _served(own, logs, table_at, phases[-1].end_s, seed + number)
        finished |= {query.name: host.lanes[query.name].finished for query in own}
    best = {phase: optimum(topologies[phase], rates[phase]).score for phase in phases}
    return VirtualRun(finished=finished, best=best)


def delivered_per_s(run: VirtualRun, outputs: Sequence[str], from_s: float, to_s: float) -> float:
    """Between two moments, from commit to commit."""
    total = 0.0
    for name in outputs:
        times_s = [batch.ended_s for batch in run.finished[name]]
        counts = np.cumsum([batch.batch.kept_tuples() for batch in run.finished[name]])
        first, last = np.interp([from_s, to_s], times_s, counts) if times_s else (0.0, 0.0)
        total += float(last - first)
    return total / (to_s - from_s)


def _served(
    own: Sequence[LiveQuery],
    logs: Mapping[str, TraceLog],
    table_at: Callable[[float], TableGiven | None],
    end_s: float,
    seed: int,
) -> VirtualHost:
    """One node, second by second as its own thread would look."""
    queries = [
        VirtualQuery(
            name=query.name,
            log=logs[query.name],
            options=GateOptions.parse({"delay": DELAY, "query": query.name, "class": _DEFAULT}),
            cost=BatchCost(fixed_s=FIXED_S, kept_s=query.cost_ms / 1e3, noise=NOISE),
        )
        for query in own
    ]
    terms = {_DEFAULT: ClassTerms(priority=1, target=Target.parse(DELAY))}
    host = VirtualHost(queries, terms, cycle_periods=2, seed=seed)
    duties, looks = Duties(node=own[0].node), LookingUp()
    for second in range(1, int(end_s)):
        host.advance(float(second))
        duties.table, duties.led_at = table_at(float(second)), second
        loads = host.control.loads(_DEFAULT, float(second))
        rates = {name: load.rate_per_s for name, load in loads.items()}
        host.control.keep_at_most(looks.next(duties, rates, float(second)))
    return host


def _log(
    query: LiveQuery,
    network: LiveNetwork,
    phases: Sequence[Phase],
    finished: Mapping[str, Sequence[Finished]],
) -> TraceLog:
    if query.reads is not None:
        times = [np.full(b.batch.kept_tuples(), b.ended_s) for b in finished[query.reads]]
        return TraceLog(np.concatenate([np.empty(0), *times]))
    full_per_s = query.rate * network.full_per_s
    times = [np.arange(p.begin_s, p.end_s, 1.0 / (p.load * full_per_s)) for p in phases]
    return TraceLog(np.concatenate(times))


def _wiring(network: LiveNetwork) -> Network:
    node_of = {query.name: query.node for query in network.queries}
    readers = {
        query.reads: tuple(q.name for q in network.queries if q.reads == query.reads)
        for query in network.queries
        if query.reads is not None
    }
    return Network(node_of=node_of, slots=dict.fromkeys(node_of.values(), 1.0), readers=readers)


def _costs(network: LiveNetwork, load: float) -> dict[str, QueryCost]:
    """As a node would report them when it is full."""
    found = {}
    for query in network.queries:
        cost_s = query.cost_ms / 1e3
        beside = sum(other.node == query.node for other in network.queries)
        full = QueryLoad(rate_per_s=1.0 / beside / cost_s, fixed_s=FIXED_S, cost_s=cost_s)
        found[query.name] = QueryCost(
            query=query.name,
            cost_s=cost_s,
            fixed_cores=FIXED_S / longest_interval_s(full, Target.parse(DELAY)),
            selectivity=1.0,
            offered_per_s=load * query.rate * network.full_per_s,
        )
    return found

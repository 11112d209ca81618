"""The leader's part in shedding for others: tables from what nodes have measured, as records.

Tables are made when queries come, go or move, when costs or selectivities have moved by more than a
table's own error, and when rates have left the range that it was made for. First rows go out at
once, the others in later passes: a programme over a thousand nodes takes a while.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import Rates
from spillway.cluster.fit.measured import (
    Averages,
    Network,
    QueryCost,
    moved,
    rates_of,
    topology_of,
)
from spillway.cluster.fit.scenarios import HIGHEST, LOWEST, growing_tables
from spillway.cluster.fit.spread import TableSize
from spillway.cluster.fit.topology import Topology
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.flow.links import links_of, readers_of
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.messages import Assignment, NodeReport
from spillway.hosts.cluster.table_records import TABLE, Table, TableGiven, given_of

ERROR = 0.05  # a change of costs that tables of either kind do not notice
ROWS = 24  # scenarios
PAPER_ROWS = 256
PEAK = 4.0  # times the rates that there are: the paper's rows end there
GROW_S = 0.1  # of a leader's pass, for more rows
LIVES = 3.0  # leases that a table lives without a leader
Made = Mapping[str, Table]


@dataclass(frozen=True, kw_only=True)
class _Basis:
    """What tables were made from."""

    kind: str
    network: Network
    costs: Mapping[str, QueryCost]
    rates: Rates

    def is_left_by(self, other: "_Basis") -> bool:
        """Tables of this one say little any more."""
        if (self.kind, self.network) != (other.kind, other.network):
            return True
        if set(self.rates) != set(other.rates) or set(self.costs) != set(other.costs):
            return True
        pairs = [(rate, other.rates[port]) for port, rate in self.rates.items()]
        return any(not LOWEST * was <= now <= HIGHEST * was for was, now in pairs)


class Tabling:
    def __init__(self, lease_s: float) -> None:
        self._ttl_s = LIVES * lease_s
        self._averages = Averages()
        self._basis: _Basis | None = None
        self._growing: Iterator[Made] | None = None
        self._fed: Mapping[str, tuple[str, ...]] = {}
        self._last: Made = {}
        self._queries: Mapping[str, Mapping[str, Any]] = {}
        self._readers: Mapping[str, tuple[str, ...]] = {}
        self._why_not = ""

    def step(
        self,
        draft: Draft,
        reports: Mapping[str, NodeReport],
        now_s: float,
        *,
        due: bool,
    ) -> str:
        """Writes what is new into the draft. Returns what the journal should know, or nothing."""
        self._averages.read((c for r in reports.values() for c in r.costs), now_s)
        flow = draft.flow
        assert flow is not None
        if flow.tables == "none":
            return self._take_back(draft, "switched off")
        try:
            if not due:
                return self._grow(draft)
            basis = self._now(flow.tables, flow.flow, draft.queries, reports)
            if basis is None:
                return self._take_back(draft, "")
            if self._basis is None or self._basis.is_left_by(basis):
                return self._begin(basis, draft, at_once=True)
            if self._growing is None and moved(self._basis.costs, basis.costs) > ERROR:
                return self._begin(basis, draft, at_once=False)
            return self._grow(draft)
        except (SpillwayError, ValidationError) as error:
            return self._take_back(draft, str(error))

    def _now(
        self,
        kind: str,
        flow: Mapping[str, object],
        queries: Mapping[str, Assignment],
        reports: Mapping[str, NodeReport],
    ) -> _Basis | None:
        """None: no query's results go to another node, or not all that do are known yet."""
        running = {name: g for name, g in queries.items() if g.state == "runs" and g.node}
        self._averages.keep_only(running)
        if not running:
            return None
        readers = self._readers_of({n: g.query for n, g in running.items()}, flow)
        if not readers:
            return None
        chained = {*readers, *(r for found in readers.values() for r in found)}
        slots = {n: r.host.capacity.cpu_cores for n, r in reports.items() if r.host is not None}
        costs = {
            name: cost
            for name, cost in self._averages.of.items()
            if name in running and running[name].node in slots
        }
        network = Network(
            node_of={name: str(running[name].node) for name in costs},
            slots={name: slots[name] for name in {str(running[q].node) for q in costs}},
            readers=readers,
        )
        if not chained <= costs.keys() or not network.spans_nodes:
            return None
        topology = topology_of(network, costs)
        rates = rates_of(topology, costs)
        return _Basis(kind=kind, network=network, costs=dict(costs), rates=rates)

    def _readers_of(
        self, queries: Mapping[str, Mapping[str, Any]], flow: Mapping[str, object]
    ) -> Mapping[str, tuple[str, ...]]:
        """Looked for again when queries have come or gone: there may be thousands."""
        if queries != self._queries:
            self._queries = queries
            self._readers = _readers(Flow.model_validate({**flow, "queries": queries}))
        return self._readers

    def _begin(self, basis: _Basis, draft: Draft, *, at_once: bool) -> str:
        """Where the old tables still say something, they stay until the new ones are whole."""
        is_first = self._basis is None
        topology = topology_of(basis.network, basis.costs)
        made = _tables(topology, basis)
        self._last = next(made)
        self._basis, self._growing, self._why_not = basis, made, ""
        self._fed = {
            node.name: tuple(n for n in node.position if (node.name, n) in topology.feeders)
            for node in topology.nodes
        }
        if at_once:
            self._put(draft, self._last)
        return "first tables" if is_first else "tables anew: costs, rates or places have moved"

    def _grow(self, draft: Draft) -> str:
        """Some more rows; written when all are there, because every version travels."""
        if self._growing is None:
            return ""
        until_s = time.perf_counter() + GROW_S
        while (found := next(self._growing, None)) is not None:
            self._last = found
            if time.perf_counter() > until_s:
                return ""
        self._growing = None
        self._put(draft, self._last)
        return ""

    def _put(self, draft: Draft, tables: Made) -> None:
        for name in draft.tables:
            if name not in tables:
                draft.remove(TABLE + name)
        for name, table in tables.items():
            draft.put(TABLE + name, TableGiven, given_of(table, self._ttl_s, self._fed[name]))

    def _take_back(self, draft: Draft, why: str) -> str:
        self._basis = self._growing = None
        for name in draft.tables:
            draft.remove(TABLE + name)
        said = f"no tables: {why}" if why and why != self._why_not else ""
        self._why_not = why
        return said


def _readers(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Of every query whose results another query reads."""
    links, found = links_of(flow), dict[str, tuple[str, ...]]()
    read_by = readers_of(flow) if links else {}
    for link in links:
        if read_by[link.stream]:
            found[link.writer] = (*found.get(link.writer, ()), *read_by[link.stream])
    return found


def _tables(topology: Topology, basis: _Basis) -> Iterator[Made]:
    if basis.kind == "paper":
        peaks = {port: PEAK * rate for port, rate in basis.rates.items()}
        return iter([build_tables(topology, TableSize(rows=PAPER_ROWS), peaks=peaks)])
    return iter(growing_tables(topology, basis.rates, np.random.default_rng(1), ROWS))

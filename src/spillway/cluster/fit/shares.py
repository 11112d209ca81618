"""Several parents: each gets a share of a common child's capacity, found by prices.

Tables coordinate trees. Where a node has several parents each of them sees only its own streams,
yet they compete for the same capacity. Every input has one feeder, so the streams themselves still
form trees; only capacities are common. `unshared` gives each parent a copy of the child that hosts
this parent's streams on a share of the capacity. Any shares are safe: no node is ever overloaded.

Good shares come from prices (dual decomposition). A common node posts one price per unit of its
time; all copies get its full capacity and pay. Scores net of prices go through tables like any
other, each root picks its best row, and the price rises where the copies together want more than
there is and falls where they want less. The average of what the copies used, over the rounds, is
the share: a subgradient method's averages converge to the optimum of a linear programme. One number
down and the changed rows up per round. The result is kept only if it beats shares in proportion to
the offered load, so negotiation never makes things worse.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import Outcome, Rates, follow, shed, shed_nothing
from spillway.cluster.fit.spread import Resolution
from spillway.cluster.fit.table import FeasibleInputTable, LocalPlan
from spillway.cluster.fit.topology import OUTSIDE, Arc, Node, Path, Topology

Shares = Mapping[str, float]  # copy -> share of the node's capacity
_PARTS = 10**6


@dataclass(frozen=True, kw_only=True)
class Unshared:
    """A forest with a copy of each node per parent, and which copies are one node."""

    forest: Topology
    copies: Mapping[str, tuple[str, ...]]  # node -> its copies


@dataclass(frozen=True, kw_only=True)
class Negotiated:
    unshared: Unshared
    shares: Shares
    tables: Mapping[str, FeasibleInputTable]
    outcome: Outcome
    proportional_score: float  # without negotiation


def unshared(topology: Topology, shares: Shares) -> Unshared:
    """One copy per node and parent copy; `shares` names the copies (missing: all of it)."""
    host: dict[tuple[str, str], str] = {}  # input -> copy
    copies: dict[str, tuple[str, ...]] = {}
    for node in topology.order:
        feeders = {e.name: _feeder(topology, host, node.name, e.name) for e in node.inputs}
        alone = len(set(feeders.values())) == 1
        for entry, feeder in feeders.items():
            host[node.name, entry] = node.name if alone else f"{node.name}<{feeder or 'outside'}"
        copies[node.name] = tuple(dict.fromkeys(host[node.name, e.name] for e in node.inputs))
    nodes = tuple(
        _copy(node, copy, host, shares) for node in topology.order for copy in copies[node.name]
    )
    return Unshared(forest=Topology(nodes), copies=copies)


def _feeder(topology: Topology, host: Mapping[tuple[str, str], str], node: str, entry: str) -> str:
    if (node, entry) not in topology.feeders:
        return OUTSIDE
    parent, path = topology.feeders[node, entry]
    return host[parent.name, path.source]


def _copy(node: Node, copy: str, host: Mapping[tuple[str, str], str], shares: Shares) -> Node:
    inputs = tuple(e for e in node.inputs if host[node.name, e.name] == copy)
    names = {entry.name for entry in inputs}
    paths = tuple(_to_copy(p, host) for p in node.paths if p.source in names)
    share = Fraction(int(shares.get(copy, 1.0) * _PARTS), _PARTS)  # rounded down: stays safe
    return replace(node, name=copy, inputs=inputs, paths=paths, capacity=node.capacity * share)


def _to_copy(path: Path, host: Mapping[tuple[str, str], str]) -> Path:
    if isinstance(path.to, Arc):
        to = path.to
        return replace(path, to=Arc(node=host[to.node, to.input], input=to.input))
    return path


def negotiate(
    topology: Topology, rates: Rates, resolution: Resolution, *, rounds: int = 12
) -> Negotiated:
    """Shares for these rates. They stay safe for others; negotiate again when rates have moved."""
    whole = unshared(topology, {})
    peaks = _at_copies(whole, rates)
    wanted = shed_nothing(whole.forest, peaks).loads
    shares = _in_proportion(whole, wanted)
    best = proportional = _evaluate(topology, rates, resolution, shares)
    if rounds and not topology.is_forest:
        used = _priced_use(whole, peaks, resolution, rounds)
        priced = _in_proportion(whole, used)
        outcome = _evaluate(topology, rates, resolution, priced)
        if outcome[2].score > best[2].score:
            shares, best = priced, outcome
    return Negotiated(
        unshared=best[0],
        shares=shares,
        tables=best[1],
        outcome=best[2],
        proportional_score=proportional[2].score,
    )


def _at_copies(whole: Unshared, rates: Rates) -> dict[tuple[str, str], float]:
    """External rates, by the copy that hosts the input."""
    origin = {copy: node for node, copies in whole.copies.items() for copy in copies}
    return {port: rates[origin[port[0]], port[1]] for port in whole.forest.external}


def _evaluate(
    topology: Topology, rates: Rates, resolution: Resolution, shares: Shares
) -> tuple[Unshared, Mapping[str, FeasibleInputTable], Outcome]:
    split = unshared(topology, shares)
    peaks = _at_copies(split, rates)
    tables = build_tables(split.forest, resolution, peaks=peaks)
    return split, tables, shed(split.forest, tables, peaks)


def _in_proportion(whole: Unshared, use: Mapping[str, float]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for copies in whole.copies.values():
        total = sum(use[copy] for copy in copies)
        for copy in copies:
            shares[copy] = use[copy] / total if total > 0 else 1.0 / len(copies)
    return shares


def _priced_use(
    whole: Unshared, peaks: Rates, resolution: Resolution, rounds: int
) -> dict[str, float]:
    """Average use of every copy, as a share of its node's capacity, over rounds of prices."""
    prices: dict[str, float] = {}
    steps: dict[str, float] = {}
    average: dict[str, float] = defaultdict(float)
    common = {node: copies for node, copies in whole.copies.items() if len(copies) > 1}
    for number in range(rounds):
        tables = build_tables(whole.forest, resolution, peaks=peaks, prices=prices)
        outcome = follow(whole.forest, peaks, partial(_best_row_plan, tables))
        for copy, load in outcome.loads.items():
            average[copy] += number * load
        for node, copies in common.items():
            load = sum(outcome.loads[copy] for copy in copies)
            if node not in steps:
                steps[node] = _worth(whole.forest, tables, outcome, copies) / max(load, 1e-9)
            price = prices.get(copies[0], 0.0) + steps[node] * (load - 1.0) / (number + 1) ** 0.5
            prices.update(dict.fromkeys(copies, max(0.0, price)))
    return dict(average)


def _worth(
    forest: Topology,
    tables: Mapping[str, FeasibleInputTable],
    outcome: Outcome,
    copies: tuple[str, ...],
) -> float:
    """Score that the copies earn per unit of capacity: the scale of a sensible price."""
    total = 0.0
    for copy in copies:
        node = forest.by_name[copy]
        offered = [outcome.offered[copy, entry.name] for entry in node.inputs]
        table = tables[copy]
        total += float(table.scores[table.best_row(offered)]) / float(node.capacity)
    return total


def _best_row_plan(
    tables: Mapping[str, FeasibleInputTable], node: Node, rates: tuple[float, ...]
) -> LocalPlan:
    """The best row even when nothing is overloaded: what is not worth its price is not sent."""
    table = tables[node.name]
    return table.plan_of(table.best_row(rates), rates)

"""One random topology each: tables against the optimum, and what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spillway.cluster.fit.build import build_table, build_tables
from spillway.cluster.fit.decide import Outcome, Rates, follow, shed, shed_nothing
from spillway.cluster.fit.fairness import delivered_fractions, jain_index, max_min_fractions
from spillway.cluster.fit.messages import full_update, refresh
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.shares import negotiate
from spillway.cluster.fit.spread import MaxError, TableSize
from spillway.cluster.fit.table import FeasibleInputTable
from spillway.cluster.fit.topology import OUTSIDE, Arc, Node, Output, Topology, exact
from spillway_lab.workloads.random_topology import Shape, random_topology

RESOLUTION = TableSize(rows=64)
LOAD_FACTORS = (0.6, 0.8, 1.0)  # of the peak rates that the tables are built for


@dataclass(frozen=True, kw_only=True)
class TreeRun:
    nodes: int
    optimum: float
    fit: float
    uncoordinated: float
    stated_error: float
    worst_excess: float  # over the load factors: optimum - fit - stated error
    highest_load: float
    built_s: float
    look_up_us: float
    optimum_s: float
    first_bytes: int
    update_bytes: int
    update_s: float
    update_hops: int
    updated_nodes: int

    @property
    def quality(self) -> float:
        return self.fit / self.optimum


def tree_run(nodes: int, seed: Sequence[int]) -> TreeRun:
    topology, rates = random_topology(Shape(nodes=nodes), np.random.default_rng(seed))
    start = time.perf_counter()
    tables = build_tables(topology, RESOLUTION, peaks=rates)
    built_s = time.perf_counter() - start
    outcome = shed(topology, tables, rates)
    start = time.perf_counter()
    best = optimum(topology, rates).score
    optimum_s = time.perf_counter() - start
    stated = stated_error(topology, tables)
    excess, highest = -np.inf, 0.0
    for factor in LOAD_FACTORS:
        scaled = {port: factor * rate for port, rate in rates.items()}
        found = shed(topology, tables, scaled)
        excess = max(excess, optimum(topology, scaled).score - found.score - stated)
        highest = max(highest, *found.loads.values())
    changed, leaf = _dearer_leaf(topology)
    start = time.perf_counter()
    update = refresh(changed, tables, [leaf], RESOLUTION, peaks=rates)
    update_s = time.perf_counter() - start
    fed = [t for name, t in tables.items() if topology.parents[name] != (OUTSIDE,)]
    return TreeRun(
        nodes=nodes,
        optimum=best,
        fit=outcome.score,
        uncoordinated=uncoordinated(topology, rates).score,
        stated_error=stated,
        worst_excess=float(excess),
        highest_load=highest,
        built_s=built_s,
        look_up_us=_look_up_us(topology, tables, rates),
        optimum_s=optimum_s,
        first_bytes=sum(len(full_update(table, 1).encode()) for table in fed),
        update_bytes=sum(update.message_bytes.values()),
        update_s=update_s,
        update_hops=update.hops,
        updated_nodes=len(update.rebuilt),
    )


def stated_error(topology: Topology, tables: dict[str, FeasibleInputTable]) -> float:
    roots = (node.name for node in topology.nodes if topology.parents[node.name] == (OUTSIDE,))
    return sum(tables[name].error for name in roots)


def uncoordinated(topology: Topology, rates: Rates) -> Outcome:
    """Every node sheds for itself alone, for the most tuples out of it."""
    peaks = shed_nothing(topology, rates).offered
    tables = {}
    for node in topology.nodes:
        highest = np.array([peaks[node.name, entry.name] for entry in node.inputs])
        tables[node.name] = build_table(_alone(node), {}, RESOLUTION, peaks=highest)
    return follow(topology, rates, lambda node, seen: tables[node.name].look_up(seen))


def _alone(node: Node) -> Node:
    paths = tuple(
        replace(path, to=Output(query=f"{path.to.node}.{path.to.input}"))
        if isinstance(path.to, Arc)
        else path
        for path in node.paths
    )
    return replace(node, paths=paths)


def _dearer_leaf(topology: Topology) -> tuple[Topology, str]:
    """The last leaf's costs rise by a tenth."""
    leaf = next(node for node in reversed(topology.order) if not node.children)
    dearer = replace(leaf, paths=tuple(replace(p, cost=p.cost * exact("1.1")) for p in leaf.paths))
    nodes = tuple(dearer if node.name == leaf.name else node for node in topology.nodes)
    return Topology(nodes), leaf.name


def _look_up_us(
    topology: Topology, tables: dict[str, FeasibleInputTable], rates: Rates, rounds: int = 5
) -> float:
    """Mean over the nodes of one look-up with the rates that arrive unshed; fastest round."""
    offered = shed_nothing(topology, rates).offered
    calls = [
        (tables[n.name], tuple(offered[n.name, e.name] for e in n.inputs)) for n in topology.nodes
    ]
    for table, seen in calls:
        table.look_up(seen)  # lays out what later look-ups reuse
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for table, seen in calls:
            table.look_up(seen)
        times.append((time.perf_counter() - start) / len(calls))
    return min(times) * 1e6


def leaf_error_run(seed: Sequence[int]) -> dict[str, float]:
    """A small tree in the paper's terms: one maximum error per table with outputs, no thinning."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 7))
    topology, rates = random_topology(Shape(nodes=nodes, max_inputs=1), rng)
    best = optimum(topology, rates).score
    error = exact(f"{best / 50:.3g}")
    tables = build_tables(topology, MaxError(score=error, rows=10**6), peaks=rates)
    with_outputs = sum(any(isinstance(p.to, Output) for p in n.paths) for n in topology.nodes)
    return {
        "nodes": nodes,
        "gap": best - shed(topology, tables, rates).score,
        "stated": stated_error(topology, tables),
        "leaves_x_error": with_outputs * float(error),
    }


def dag_run(nodes: int, seed: Sequence[int]) -> dict[str, float]:
    shape = Shape(nodes=nodes, max_parents=3)
    topology, rates = random_topology(shape, np.random.default_rng(seed))
    best = optimum(topology, rates).score
    start = time.perf_counter()
    found = negotiate(topology, rates, RESOLUTION, rounds=8)
    return {
        "nodes": nodes,
        "copies": len(found.unshared.forest.nodes),
        "quality": found.outcome.score / best,
        "proportional": found.proportional_score / best,
        "highest_load": max(found.outcome.loads.values()),
        "negotiated_s": time.perf_counter() - start,
    }


def fairness_runs(seed: Sequence[int]) -> list[dict[str, float | str]]:
    """One tree of 50 nodes: the most tuples against the fairest split."""
    topology, rates = random_topology(Shape(nodes=50), np.random.default_rng(seed))
    tables = build_tables(topology, RESOLUTION, peaks=rates)
    full = shed_nothing(topology, rates).delivered
    most = delivered_fractions(topology, rates, shed(topology, tables, rates).delivered)
    ideal = delivered_fractions(topology, rates, optimum(topology, rates).delivered)
    fair = max_min_fractions(topology, rates)
    return [
        {
            "aim": aim,
            "delivered": sum(full[q] * x for q, x in fractions.items()),
            "lowest": min(fractions.values()),
            "jain": jain_index(fractions.values()),
        }
        for aim, fractions in (
            ("throughput, optimum", ideal),
            ("throughput, tables", most),
            ("max-min", fair),
        )
    ]

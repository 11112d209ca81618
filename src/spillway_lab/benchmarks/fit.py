"""Feasible input tables: time to build, to look up, to update, and what travels."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.decide import Rates, Tables, shed, shed_nothing
from spillway.cluster.fit.messages import full_update, refresh
from spillway.cluster.fit.optimum import optimum
from spillway.cluster.fit.spread import TableSize
from spillway.cluster.fit.topology import OUTSIDE, Topology, exact
from spillway.report import Table
from spillway_lab.benchmarks.registry import Benchmark, BenchReport, BenchSetup
from spillway_lab.workloads.random_topology import Shape, random_topology

BUILD_LIMIT_S = 2.0
LOOK_UP_LIMIT_US = 20.0
ROWS = (16, 32, 64, 128)


def run(setup: BenchSetup) -> BenchReport:
    """A random tree of 1,000 nodes (quick: 100), once per table size."""
    nodes = 100 if setup.quick else 1000
    topology, rates = random_topology(Shape(nodes=nodes), np.random.default_rng(setup.seed))
    best = optimum(topology, rates).score
    found = []
    for number, rows in enumerate(ROWS):
        setup.progress(f"{rows} rows", number / len(ROWS))
        found.append(_measure(topology, rates, rows, best))
    columns = (
        "rows",
        "build s",
        "look-up us",
        "worst us",
        "all bytes",
        "update bytes",
        "ms",
        "nodes",
        "quality",
    )
    table = Table(
        title=f"A tree of {nodes} nodes; limits {BUILD_LIMIT_S:g} s and {LOOK_UP_LIMIT_US:g} us"
        f" at {TableSize().rows} rows",
        columns=columns,
        rows=[tuple(entry.values()) for entry in found],
    )
    return BenchReport(results={"nodes": nodes, "tables": found}, tables=(table,))


def _measure(topology: Topology, rates: Rates, rows: int, best: float) -> dict[str, Any]:
    size = TableSize(rows=rows)
    start = time.perf_counter()
    tables = build_tables(topology, size, peaks=rates)
    built_s = time.perf_counter() - start
    worst_us, mean_us = _look_ups_us(topology, tables, rates)
    fed = [t for name, t in tables.items() if topology.parents[name] != (OUTSIDE,)]
    leaf = next(node for node in reversed(topology.order) if not node.children)
    dearer = replace(leaf, paths=tuple(replace(p, cost=p.cost * exact("1.1")) for p in leaf.paths))
    changed = Topology(tuple(dearer if n is leaf else n for n in topology.nodes))
    start = time.perf_counter()
    update = refresh(changed, tables, [leaf.name], size, peaks=rates)
    updated_s = time.perf_counter() - start
    return {
        "rows": rows,
        "build_s": round(built_s, 3),
        "look_up_mean_us": round(mean_us, 2),
        "look_up_worst_us": round(worst_us, 2),
        "first_bytes": sum(len(full_update(table, 1).encode()) for table in fed),
        "update_bytes": sum(update.message_bytes.values()),
        "update_ms": round(updated_s * 1e3, 2),
        "updated_nodes": len(update.rebuilt),
        "quality": round(shed(topology, tables, rates).score / best, 4),
    }


def _look_ups_us(
    topology: Topology, tables: Tables, rates: Rates, rounds: int = 7
) -> tuple[float, float]:
    """Slowest table and mean over all nodes; of each table the fastest of several rounds."""
    offered = shed_nothing(topology, rates).offered
    times = []
    for node in topology.nodes:
        seen = tuple(offered[node.name, entry.name] for entry in node.inputs)
        times.append(min(_look_up_s(tables, node.name, seen) for _ in range(rounds)))
    return max(times) * 1e6, sum(times) / len(times) * 1e6


def _look_up_s(tables: Tables, name: str, seen: tuple[float, ...]) -> float:
    table = tables[name]
    start = time.perf_counter()
    table.look_up(seen)
    return time.perf_counter() - start


BENCHMARKS = (Benchmark(name="fit", title="feasible input tables on a large tree", run=run),)

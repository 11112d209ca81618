"""`fit-live`: nodes on real Spark that shed for each other by tables, and each for itself.

Every network runs once. The streams from outside step from one overload to the next; in each the
nodes shed with tables, then alone. The optimum is the linear programme over what the nodes
themselves measured meanwhile (costs, selectivities, and the time that the fixed price of their
batches takes), at the rates that were offered.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spillway.cluster.fit.measured import Network, QueryCost, topology_of
from spillway.cluster.fit.optimum import optimum
from spillway.report import Table
from spillway_lab.experiments.fit.live_cluster import LiveCluster
from spillway_lab.experiments.fit.live_networks import PAPER, TREE, LiveNetwork
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

OVERLOADS = (2.0, 4.0, 8.0)
WARM_S, WARM_LOAD = 75.0, 0.9
SETTLE_S, MEASURE_S = 35.0, 55.0
LAST_BATCH_S = 20.0  # until what was planned in the last second has been committed
_HALF_S = SETTLE_S + MEASURE_S
_LOOK_S = 3.0
_ENOUGH = 0.9  # of the optimum


def run(setup: Setup) -> Report:
    results: dict[str, Any] = {}
    for number, network in enumerate((PAPER, TREE)):
        with tempfile.TemporaryDirectory(prefix="spillway-fit-") as folder:
            setup.progress(f"{network.name}: nodes start", number / 2)
            results |= _measured(network, Path(folder), setup, number)
    columns = ("network", "with tables", "each alone", "optimum", "of the optimum")
    rows = [
        (name, r["fit"], r["alone"], r["optimum"], f"{r['fit'] / r['optimum']:.1%}")
        for name, r in results.items()
    ]
    table = Table(title="results delivered per second", columns=columns, rows=rows)
    return Report(
        experiment="fit-live",
        setup=setup,
        results=results,
        checks=_checks(results),
        tables=(table,),
    )


def _measured(network: LiveNetwork, root: Path, setup: Setup, number: int) -> dict[str, Any]:
    cluster = LiveCluster(network, root, _profile(network))
    found: dict[str, Any] = {}
    try:
        began_s = cluster.begin() + WARM_S
        begins_s = {over: began_s + 2 * n * _HALF_S for n, over in enumerate(OVERLOADS)}
        for step, (overload, begin_s) in enumerate(begins_s.items()):
            setup.progress(f"{network.name}, {overload:g}x", (number + (step + 1) / 4) / 2)
            _until(begin_s)
            cluster.use("scenarios")
            seen = _costs(cluster, begin_s + _HALF_S)
            records, table_bytes = cluster.table_bytes()
            cluster.use("none")
            seen += _costs(cluster, begin_s + 2 * _HALF_S)
            found[f"{network.name}-{overload:g}x"] = {
                "optimum": round(_optimum(seen, network.full_per_s * overload), 1),
                "table_records": records,
                "table_bytes": table_bytes,
            }
        _until(time.time() + LAST_BATCH_S)
        for row, begin_s in zip(found.values(), begins_s.values(), strict=True):
            row |= _delivered(cluster, begin_s)
    finally:
        cluster.close()
    return found


def _delivered(cluster: LiveCluster, begin_s: float) -> dict[str, float | None]:
    halfway_s, end_s = begin_s + _HALF_S, begin_s + 2 * _HALF_S
    reaction_s = cluster.reaction_s(begin_s, halfway_s)
    return {
        "fit": round(cluster.delivered_per_s(begin_s + SETTLE_S, halfway_s), 1),
        "alone": round(cluster.delivered_per_s(halfway_s + SETTLE_S, end_s), 1),
        "reaction_s": None if reaction_s is None else round(reaction_s, 1),
    }


def _profile(network: LiveNetwork) -> list[tuple[float, float]]:
    steps = [
        (WARM_S + 2 * step * _HALF_S, overload * network.full_per_s)
        for step, overload in enumerate(OVERLOADS)
    ]
    return [(0.0, WARM_LOAD * network.full_per_s), *steps]


def _costs(cluster: LiveCluster, until_s: float) -> list[tuple[Network, Mapping[str, QueryCost]]]:
    seen = []
    while time.time() < until_s:
        time.sleep(max(0.0, min(_LOOK_S, until_s - time.time())))
        seen.append(cluster.measured())
    return seen


def _optimum(seen: Sequence[tuple[Network, Mapping[str, QueryCost]]], rate_per_s: float) -> float:
    """Over the means of what was measured."""
    network = seen[-1][0]
    costs = {}
    for name in network.node_of:
        of_query = [costs_then[name] for _, costs_then in seen if name in costs_then]
        costs[name] = QueryCost(
            query=name,
            cost_s=float(np.mean([cost.cost_s for cost in of_query])),
            fixed_cores=float(np.mean([cost.fixed_cores for cost in of_query])),
            selectivity=float(np.mean([cost.selectivity for cost in of_query])),
            offered_per_s=rate_per_s,
        )
    topology = topology_of(network, costs)
    return optimum(topology, dict.fromkeys(topology.external, rate_per_s)).score


def _until(moment_s: float) -> None:
    time.sleep(max(0.0, moment_s - time.time()))


def _checks(results: Mapping[str, Mapping[str, Any]]) -> tuple[Check, ...]:
    least = min(r["fit"] / r["optimum"] for r in results.values())
    worse = [name for name, r in results.items() if r["fit"] < r["alone"]]
    return (
        Check(
            name="tables reach the optimum",
            paper="within the error of the tables",
            here=f"at least {least:.1%} of the optimum over what was measured",
            holds=least >= _ENOUGH,
        ),
        Check(
            name="nodes shed for those behind them",
            paper="coordinated plans deliver more",
            here=f"less than each alone on {', '.join(worse) or 'none'}",
            holds=not worse,
        ),
    )


EXPERIMENTS = (
    Experiment(
        name="fit-live",
        title="figure 1 and a tree of five nodes on real Spark, with tables and each alone",
        source="FIT 2006, figure 1; the tree is our own",
        run=run,
        plants=("spark",),
    ),
)

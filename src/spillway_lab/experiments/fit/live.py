"""`fit-live`: nodes on real Spark that shed for each other by tables, and each for itself.

Every network runs once. The streams from outside step from one overload to the next, first with
tables, then the same again with each node alone. The optimum is the linear programme over what the
nodes themselves measured meanwhile (costs, selectivities, and the time that the fixed price of
their batches takes), at the rates that were offered.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spillway.cluster.fit.measured import Network, QueryCost, rates_of, topology_of
from spillway.cluster.fit.optimum import optimum
from spillway.report import Table
from spillway_lab.experiments.fit import live_virtual as virtual
from spillway_lab.experiments.fit.live_cluster import LiveCluster
from spillway_lab.experiments.fit.live_networks import PAPER, TREE, LiveNetwork
from spillway_lab.experiments.report import Check, Experiment, Report, Setup

OVERLOADS = (2.0, 4.0, 8.0)
TABLES = "scenarios"
WARM_S, WARM_LOAD = 75.0, 0.9
SETTLE_S, MEASURE_S = 30.0, 60.0
LAST_BATCH_S = 20.0  # until what was planned in the last second has been committed
_PHASE_S = SETTLE_S + MEASURE_S
_LOOK_S = 3.0
_ENOUGH = 0.9  # of the optimum
Seen = tuple[Network, Mapping[str, QueryCost]]


def run(setup: Setup) -> Report:
    results: dict[str, Any] = {}
    for number, network in enumerate((PAPER, TREE)):
        if setup.plant == "sim":
            results |= _simulated(network, setup)
            continue
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
    cluster = LiveCluster(network, root, _profile())
    seen: dict[float, list[Seen]] = {overload: [] for overload in OVERLOADS}
    sent: dict[float, tuple[int, int]] = {}
    try:
        phases = _phases(cluster.begin() + WARM_S)
        for done, (tables, overload, begin_s) in enumerate(phases):
            setup.progress(f"{network.name}, {overload:g}x", (number + done / len(phases)) / 2)
            _until(begin_s)
            cluster.use(tables)
            seen[overload] += _costs(cluster, begin_s + _PHASE_S)
            if tables != "none":
                sent[overload] = cluster.table_bytes()
        _until(time.time() + LAST_BATCH_S)
        rates = {
            (tables, overload): _delivered(cluster, begin_s) for tables, overload, begin_s in phases
        }
        reactions_s = {
            overload: cluster.reaction_s(begin_s, begin_s + _PHASE_S)
            for tables, overload, begin_s in phases
            if tables != "none"
        }
    finally:
        cluster.close()
    return {
        f"{network.name}-{overload:g}x": {
            "fit": rates[TABLES, overload],
            "alone": rates["none", overload],
            "optimum": round(_optimum(seen[overload], _rates(network, overload)), 1),
            "reaction_s": reactions_s[overload],
            "tables": sent[overload][0],
            "table_bytes": sent[overload][1],
        }
        for overload in OVERLOADS
    }


def _simulated(network: LiveNetwork, setup: Setup) -> dict[str, Any]:
    """In virtual time, with costs as they are."""
    kinds = _phases(WARM_S)
    ends_s = [begin_s for _, _, begin_s in kinds[1:]] + [kinds[-1][2] + _PHASE_S + LAST_BATCH_S]
    warm = virtual.Phase(begin_s=0.0, end_s=WARM_S, load=WARM_LOAD, with_tables=True)
    phases = {
        (tables, overload): virtual.Phase(
            begin_s=begin_s, end_s=end_s, load=overload, with_tables=tables != "none"
        )
        for (tables, overload, begin_s), end_s in zip(kinds, ends_s, strict=True)
    }
    done = virtual.run(network, [warm, *phases.values()], setup.seed)

    def delivered(phase: virtual.Phase) -> float:
        from_s, to_s = phase.begin_s + SETTLE_S, phase.begin_s + _PHASE_S
        return round(virtual.delivered_per_s(done, network.outputs, from_s, to_s), 1)

    return {
        f"{network.name}-{overload:g}x": {
            "fit": delivered(phases[TABLES, overload]),
            "alone": delivered(phases["none", overload]),
            "optimum": round(done.best[phases[TABLES, overload]], 1),
        }
        for overload in OVERLOADS
    }


def _phases(begin_s: float) -> list[tuple[str, float, float]]:
    """(tables, overload, when it begins)."""
    kinds = [(tables, overload) for tables in (TABLES, "none") for overload in OVERLOADS]
    return [(*kind, begin_s + number * _PHASE_S) for number, kind in enumerate(kinds)]


def _profile() -> list[tuple[float, float]]:
    return [(0.0, WARM_LOAD), *((at_s, overload) for _, overload, at_s in _phases(WARM_S))]


def _delivered(cluster: LiveCluster, begin_s: float) -> float:
    return round(cluster.delivered_per_s(begin_s + SETTLE_S, begin_s + _PHASE_S), 1)


def _costs(cluster: LiveCluster, until_s: float) -> list[tuple[Network, Mapping[str, QueryCost]]]:
    seen: list[Seen] = []
    while time.time() < until_s:
        time.sleep(max(0.0, min(_LOOK_S, until_s - time.time())))
        seen.append(cluster.measured())
    return seen


def _rates(network: LiveNetwork, overload: float) -> dict[str, float]:
    """Of every stream from outside, by the query that reads it."""
    return {query.name: overload * query.rate * network.full_per_s for query in network.roots}


def _optimum(seen: Sequence[Seen], rates: Mapping[str, float]) -> float:
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
            offered_per_s=rates.get(name, 0.0),
        )
    topology = topology_of(network, costs)
    return optimum(topology, rates_of(topology, costs)).score


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
        plants=("spark", "sim"),
    ),
)

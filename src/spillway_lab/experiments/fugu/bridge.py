"""fugu-bridge: shedding bridges the start of a node, and prices decide which of both."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spillway.cluster.prices import Prices
from spillway.cluster.scaling.bridge import Bridge
from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.scaling.true_rate import TrueRate
from spillway.report import Table
from spillway_lab.experiments.fugu.market import SECTORS
from spillway_lab.experiments.report import Check, Experiment, Report, Setup
from spillway_lab.simulated_cluster.cluster import ClusterSettings
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling
from spillway_lab.simulated_cluster.workload import ClusterWorkload, sector_queries

NODE_HOUR = 1.0
TUPLE_PRICES = {"cheap tuples": 0.0002, "middling tuples": 0.002, "dear tuples": 0.05}
SCALE_AT_ONCE = Prices(per_million_tuples=1.0, per_node_hour=0.0)
NEVER_SCALE = Prices(per_million_tuples=0.0, per_node_hour=1.0)


def bridge(setup: Setup) -> Report:
    """Short and long overloads; nodes that take a minute to start; three prices of a tuple."""
    workload = burst_workload(setup.seed)
    rows: list[tuple[object, ...]] = []
    results: dict[str, Any] = {}
    checks: list[Check] = []
    fixed = {
        "scale, never shed": _bridged(workload, None),
        "shed, never scale": _bridged(workload, NEVER_SCALE),
        "shed while starting": _bridged(workload, SCALE_AT_ONCE),
    }
    for done, (label, per_million) in enumerate(TUPLE_PRICES.items()):
        prices = Prices(per_million_tuples=per_million, per_node_hour=NODE_HOUR)
        runs = {**fixed, "prices decide": _bridged(workload, prices)}
        bills = {name: _bill(run, prices) for name, run in runs.items()}
        rows += [(label, name, *_figures(run), bills[name]) for name, run in runs.items()]
        results[label] = {
            name: {**run.summary(), "bill": bills[name]} for name, run in runs.items()
        }
        checks.append(_cheap(label, bills, fixed["shed, never scale"].host_hours))
        setup.progress(label, (done + 1) / len(TUPLE_PRICES))
    columns = ("price", "strategy", "delay p50 [s]", "p99", "shed [M tuples]", "host hours", "bill")
    title = f"shed and scale: a node hour costs {NODE_HOUR:g}"
    return Report(
        experiment="fugu-bridge",
        setup=setup,
        results=results,
        checks=[*checks, _prompt(fixed)],
        tables=[Table(title=title, columns=columns, rows=rows)],
    )


def _cheap(label: str, bills: Mapping[str, float], quiet_host_hours: float) -> Check:
    """What every strategy pays for the hosts that the quiet hours need decides nothing."""
    base = NODE_HOUR * quiet_host_hours
    extra = {name: bill - base for name, bill in bills.items()}
    rival = min(extra["shed, never scale"], extra["shed while starting"])
    return Check(
        name=f"{label}: letting prices decide costs at most twice the better extreme",
        paper="(beyond the paper; bill beyond the hosts that are always there)",
        here=f"{extra['prices decide']:.3f} against {rival:.3f}",
        holds=extra["prices decide"] <= 2.0 * rival,
    )


def _prompt(fixed: Mapping[str, ScalingRun]) -> Check:
    late_s = {name: run.delay_percentile_s(99) for name, run in fixed.items()}
    return Check(
        name="shedding while nodes start keeps the delay down",
        paper="(beyond the paper)",
        here=f"99th percentile {late_s['shed while starting']:.2f} s against"
        f" {late_s['scale, never shed']:.2f} s",
        holds=late_s["shed while starting"] < late_s["scale, never shed"] / 2.0,
    )


def burst_workload(seed: int) -> ClusterWorkload:
    """An hour at 1.5 cores with eight overloads of 20 s to 10 minutes at up to three times that."""
    rng = np.random.default_rng((seed, 78))
    level = np.ones(3600)
    for start in np.arange(8) * 450 + rng.integers(0, 100, size=8):
        length = int(np.exp(rng.uniform(np.log(20), np.log(350))))
        level[start : start + length] = rng.uniform(1.8, 3.0)
    share = rng.dirichlet(np.full(SECTORS, 8.0))
    ticks = rng.poisson(level[:, None] * share * 60.0).astype(np.float64) * 200.0
    mean_cores = 1.5 * float(level.mean())
    return sector_queries(ticks, step_s=1.0, queries=35, mean_cores=mean_cores, rng=rng)


def _bridged(workload: ClusterWorkload, prices: Prices | None) -> ScalingRun:
    settings = ScalingSettings()
    scaler = Scaler(
        TrueRate(settings),
        settings,
        learn_from_failure=True,
        bridge=Bridge(prices) if prices else None,
    )
    return run_scaling(workload, scaler, settings=ClusterSettings(start_s=60.0))


def _bill(run: ScalingRun, prices: Prices) -> float:
    return run.host_hours * prices.per_node_hour + prices.shed(float(run.shed_tuples.sum()))


def _figures(run: ScalingRun) -> tuple[float, ...]:
    shed_millions = float(run.shed_tuples.sum()) / 1e6
    return (
        run.delay_percentile_s(50),
        run.delay_percentile_s(99),
        shed_millions,
        run.host_hours,
    )


EXPERIMENTS = (
    Experiment(
        name="fugu-bridge",
        title="shedding bridges the start of a node; prices decide",
        source="beyond FUGU 2014",
        run=bridge,
    ),
)

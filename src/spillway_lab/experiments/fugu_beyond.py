"""Beyond FUGU: load steps for every scaler, two ways to move, and shedding as a bridge."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.cluster.scaling.bridge import Bridge, Prices
from spillway.cluster.scaling.policy import ScalingSettings
from spillway.cluster.scaling.sarsa_table import Learning
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.scaling.true_rate import TrueRate
from spillway.report import Table
from spillway_lab.experiments.fugu_market import SECTORS, market_workload
from spillway_lab.experiments.fugu_pictures import courses
from spillway_lab.experiments.fugu_runs import POLICIES, scaler_of
from spillway_lab.experiments.report import Check, Experiment, Report, Setup
from spillway_lab.simulated_cluster.cluster import ClusterSettings
from spillway_lab.simulated_cluster.moves import MoveProtocol, PauseAndReplay, UniMiCo
from spillway_lab.simulated_cluster.run import ScalingRun, run_scaling
from spillway_lab.simulated_cluster.workload import ClusterWorkload, sector_queries

STEPS = 10
HOLD_S = 300
LEAST_CORES, MOST_CORES = 0.8, 5.5  # at the target utilisation 2 to 10 hosts
RATE_PER_CORE_S = 9000.0

Floats = npt.NDArray[np.float64]


def steps(setup: Setup) -> Report:
    """Jumps of the load between 0.8 and 5.5 cores, held for five minutes each."""
    workload, levels = step_workload(setup.seed)
    settings = ScalingSettings()
    runs: dict[str, ScalingRun] = {}
    for done, policy in enumerate(POLICIES):
        runs[policy] = run_scaling(workload, scaler_of(policy, settings, Learning()))
        setup.progress(policy, (done + 1) / len(POLICIES))
    counts = {policy: decisions_per_step(run) for policy, run in runs.items()}
    rows = [
        (policy, int(counts[policy].max()), float(counts[policy].mean()), *_figures(run))
        for policy, run in runs.items()
    ]
    most = int(counts["true rate"].max())
    return Report(
        experiment="fugu-steps",
        setup=setup,
        results={
            "levels_cores": levels.tolist(),
            "decisions_per_step": {policy: count.tolist() for policy, count in counts.items()},
            "runs": {policy: run.summary() for policy, run in runs.items()},
        },
        checks=[
            Check(
                name="the one-step scaler fits the cluster in at most 2 decisions per load step",
                paper="(beyond the paper; a decision is one plan of starts, stops and moves)",
                here=f"at most {most}, on average {counts['true rate'].mean():.1f}",
                holds=most <= 2,
            )
        ],
        tables=[
            Table(
                title=f"{STEPS} load steps: scaling decisions per step, and what they lead to",
                columns=("scaler", "most", "mean", *FIGURES),
                rows=rows,
            )
        ],
        pictures={"": lambda: _step_picture(workload, runs)},
    )


def step_workload(seed: int) -> tuple[ClusterWorkload, Floats]:
    """Levels drawn evenly on a log scale; Poisson ticks; sectors of uneven popularity."""
    rng = np.random.default_rng((seed, 77))
    levels = np.exp(rng.uniform(np.log(LEAST_CORES), np.log(MOST_CORES), size=STEPS))
    share = rng.dirichlet(np.full(SECTORS, 8.0))
    rates = np.repeat(levels, HOLD_S)[:, None] * share * RATE_PER_CORE_S
    # One tick of the recording stands for 200: so does a drawn one here.
    ticks = rng.poisson(rates / 200.0).astype(np.float64) * 200.0
    mean_cores = float(levels.mean())
    workload = sector_queries(ticks, step_s=1.0, queries=35, mean_cores=mean_cores, rng=rng)
    return workload, levels


def decisions_per_step(run: ScalingRun) -> npt.NDArray[np.int64]:
    """A decision in the second in which the load jumps still belongs to the level before."""
    step = np.clip(np.ceil(run.decided_s / HOLD_S).astype(np.int64) - 1, 0, STEPS - 1)
    return np.bincount(step, minlength=STEPS)


FIGURES = ("avg util", "delay p50 [s]", "p90", "moves", "host hours", "helped")


def _figures(run: ScalingRun) -> tuple[float, ...]:
    found = run.summary()
    keys = ("utilisation_mean", "delay_p50_s", "delay_p90_s", "moves", "host_hours")
    return (*(found[key] for key in keys), found["helped_fraction"])


def _step_picture(workload: ClusterWorkload, runs: Mapping[str, ScalingRun]) -> Any:
    chosen = ("local thresholds", "Sarsa", "control", "true rate")
    wanted: Floats = workload.demand_cores.sum(axis=(0, 2)).reshape(-1, 5).mean(axis=1)
    time_s: Floats = np.arange(len(wanted), dtype=np.float64) * 5.0
    hosts = {name: (runs[name].time_s, runs[name].hosts) for name in chosen}
    delays = {name: (runs[name].time_s, runs[name].delay_s) for name in chosen}
    demand = {"wanted / target": (time_s, wanted / ScalingSettings().target)}
    return courses("Load steps", {"hosts": {**hosts, **demand}, "delay [s]": delays})


_OVERLOAD = (
    "this percentile is made by overload more than by pauses, and which way it goes changes with"
    " the seed; a move without a pause keeps both hosts busy for a window, so relief comes later"
)


def moves(setup: Setup) -> Report:
    """The same scalers with moves that pause and with moves that do not."""
    workload = market_workload("day1", setup.seed)
    protocols: dict[str, MoveProtocol] = {
        "pause and replay": PauseAndReplay(),
        "UniMiCo": UniMiCo(),
    }
    policies = ("local thresholds", "Sarsa", "true rate")
    runs: dict[tuple[str, str], ScalingRun] = {}
    for policy in policies:
        for name, protocol in protocols.items():
            scaler = scaler_of(policy, ScalingSettings(), Learning())
            runs[policy, name] = run_scaling(workload, scaler, protocol=protocol)
            setup.progress(policy, len(runs) / 6.0)
    calmer = {
        percent: [
            policy
            for policy in policies
            if runs[policy, "UniMiCo"].delay_percentile_s(percent)
            < runs[policy, "pause and replay"].delay_percentile_s(percent)
        ]
        for percent in (50, 90)
    }
    return Report(
        experiment="fugu-moves",
        setup=setup,
        results={f"{policy}, {name}": run.summary() for (policy, name), run in runs.items()},
        checks=[
            Check(
                name=f"moves that do not pause lower the {percent}th percentile",
                paper="(beyond the paper)",
                here=f"for {', '.join(found) or 'none'}; {len(found)} of {len(policies)} scalers",
                holds=len(found) == len(policies),
                note="" if len(found) == len(policies) else _OVERLOAD,
            )
            for percent, found in calmer.items()
        ],
        tables=[
            Table(
                title="two ways to move an operator, first day",
                columns=("scaler", "move", *FIGURES),
                rows=[(*key, *_figures(run)) for key, run in runs.items()],
            )
        ],
    )


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
        rows += [(label, name, *_bridge_figures(run), bills[name]) for name, run in runs.items()]
        results[label] = {
            name: {**run.summary(), "bill": bills[name]} for name, run in runs.items()
        }
        # What every strategy pays for the hosts that the quiet hours need decides nothing.
        base = NODE_HOUR * fixed["shed, never scale"].host_hours
        extra = {name: bill - base for name, bill in bills.items()}
        rival = min(extra["shed, never scale"], extra["shed while starting"])
        checks.append(
            Check(
                name=f"{label}: letting prices decide costs at most twice the better extreme",
                paper="(beyond the paper; bill beyond the hosts that are always there)",
                here=f"{extra['prices decide']:.3f} against {rival:.3f}",
                holds=extra["prices decide"] <= 2.0 * rival,
            )
        )
        setup.progress(label, (done + 1) / len(TUPLE_PRICES))
    late = {name: run.delay_percentile_s(99) for name, run in fixed.items()}
    checks.append(
        Check(
            name="shedding while nodes start keeps the delay down",
            paper="(beyond the paper)",
            here=f"99th percentile {late['shed while starting']:.2f} s against"
            f" {late['scale, never shed']:.2f} s",
            holds=late["shed while starting"] < late["scale, never shed"] / 2.0,
        )
    )
    columns = ("price", "strategy", "delay p50 [s]", "p99", "shed [M tuples]", "host hours", "bill")
    title = f"shed and scale: a node hour costs {NODE_HOUR:g}"
    table = Table(title=title, columns=columns, rows=rows)
    return Report(
        experiment="fugu-bridge", setup=setup, results=results, checks=checks, tables=[table]
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


def _bridge_figures(run: ScalingRun) -> tuple[float, ...]:
    shed_millions = float(run.shed_tuples.sum()) / 1e6
    return (
        run.delay_percentile_s(50),
        run.delay_percentile_s(99),
        shed_millions,
        run.host_hours,
    )


EXPERIMENTS = (
    Experiment(
        name="fugu-steps",
        title="every scaler on load steps: how many decisions it needs",
        source="beyond FUGU 2014 (DS2, control)",
        run=steps,
    ),
    Experiment(
        name="fugu-moves",
        title="moves that pause and replay against UniMiCo moves",
        source="FUGU 2014 section II, thesis chapter 7",
        run=moves,
    ),
    Experiment(
        name="fugu-bridge",
        title="shedding bridges the start of a node; prices decide",
        source="beyond FUGU 2014",
        run=bridge,
    ),
)

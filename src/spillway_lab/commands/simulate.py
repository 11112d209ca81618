"""`spillway simulate`: one load manager on one workload, in virtual time."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from spillway.cli.screen import errors, print_json, print_table, progress_bar
from spillway.errors import SpillwayError, require, unknown_name
from spillway.hosts.virtual.machine import DISTURBED, BatchCost
from spillway.load import laws
from spillway.model import Target, parse_duration_s
from spillway.report import Table
from spillway.workloads import named
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.microbatch import MicroBatchPlant, Query
from spillway_lab.engine.network import Network, load_coefficient
from spillway_lab.engine.networks import SETTINGS, make_setting
from spillway_lab.engine.run import Run, SimulatedPlant, simulate
from spillway_lab.engine.statistics import Floats
from spillway_lab.workloads.files import replay

MICRO_BATCH = "micro-batch"
PERIODS = (
    *("time_s", "offered", "admitted", "shed", "completed", "queued"),
    *("delay_s", "target_s", "keep_fraction", "headroom", "cost_s"),
)


def command(
    manager: Annotated[str, typer.Option(help=f"load manager: {', '.join(laws.LAWS)}")] = (
        "predictive"
    ),
    network: Annotated[
        str, typer.Option(help=f"{', '.join(SETTINGS)}, or {MICRO_BATCH} (Spark's engine)")
    ] = "ctrl",
    workload: Annotated[
        str, typer.Option(help=f"{', '.join(named.WORKLOADS)}, or a file of arrival times")
    ] = "web",
    rate: Annotated[
        float | None, typer.Option(help="tuples/s; default: 1.5 times what can be sustained")
    ] = None,
    target: Annotated[str, typer.Option(help="for example '2s' or 'p99 2s'")] = "2s",
    duration: Annotated[str, typer.Option(help="virtual time, for example '100s'")] = "100s",
    period: Annotated[str, typer.Option(help="control period")] = "1s",
    cost: Annotated[
        str | None, typer.Option(help="pipeline time per tuple, for example '5ms'")
    ] = None,
    noisy: Annotated[
        bool, typer.Option(help="micro-batch: noise, pauses, warm-up and curvature")
    ] = False,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="of the load manager: headroom=0.9")
    ] = None,
    seed: Annotated[int, typer.Option(help="seed of all randomness")] = 1,
    out: Annotated[Path | None, typer.Option(help="save a picture here (PNG)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Run one load manager in virtual time and show what it does to delay and loss."""
    law = laws.make(manager, **_settings(setting or []))
    duration_s = parse_duration_s(duration, "duration")
    period_s = parse_duration_s(period, "control period")
    require(seed >= 0, "seed", seed, "zero or above")
    require(out is None or out.suffix == ".png", "--out", str(out), "a file that ends in .png")
    goal = Target.parse(target)
    cost_s = parse_duration_s(cost, "cost") if cost is not None else None
    if network == MICRO_BATCH:
        plant, offered_per_s = _micro_batch(workload, rate, duration_s, goal, cost_s, noisy, seed)
    else:
        plant, offered_per_s = _network(network, workload, rate, duration_s, goal, cost_s, seed)
    with progress_bar("simulate") as progress:
        run = simulate(
            plant, law, duration_s, period_s, progress=lambda done: progress(manager, done)
        )
    if out is not None:
        _save(run, out, f"{manager} on {network}, {workload} at {offered_per_s:.4g} tuples/s")
    if as_json:
        chosen = {
            "manager": manager,
            "network": network,
            "workload": workload,
            "target": str(goal),
            "seed": seed,
        }
        print_json(chosen | {"results": _results(run), "periods": _periods(run)})
        return
    print_table(
        Table(
            title=f"{manager} on {network}, {workload}, target {goal}",
            columns=("figure", "value"),
            rows=list(_results(run).items()),
        )
    )


def _settings(given: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise SpillwayError(
                f"--set is '{text}': it must be name=number, for example headroom=0.9"
            ) from error
    return found


def _arrivals(workload: str, rate_per_s: float, duration_s: float, seed: int) -> Floats:
    if workload in named.WORKLOADS:
        return named.make(workload, seed=seed, duration_s=duration_s, rate_per_s=rate_per_s)
    path = Path(workload)
    if not path.suffix:
        raise unknown_name("workload", workload, named.WORKLOADS)
    times_s = replay(path)
    # A file has a rate of its own: it is stretched to the wanted one.
    length_s = float(times_s[-1]) or 1.0
    times_s = times_s * (times_s.size / length_s / rate_per_s)
    return times_s[times_s < duration_s]


def _network(
    name: str,
    workload: str,
    rate: float | None,
    duration_s: float,
    target: Target,
    cost_s: float | None,
    seed: int,
) -> tuple[SimulatedPlant, float]:
    if name not in SETTINGS:
        raise unknown_name("network", name, [*SETTINGS, MICRO_BATCH])
    setting = make_setting(name)
    network, sustained_per_s = setting.network, setting.rate_per_s
    if cost_s is not None:
        now_s = sum(load_coefficient(network, stream.name) for stream in network.streams)
        network, sustained_per_s = (
            _scaled(network, cost_s / now_s),
            sustained_per_s * now_s / cost_s,
        )
    rate_per_s = rate if rate is not None else 1.5 * sustained_per_s
    arrivals = {
        stream.name: _arrivals(workload, rate_per_s, duration_s, seed + i)
        for i, stream in enumerate(network.streams)
    }
    plant = NetworkPlant(
        network, arrivals, target=target, engine=setting.engine, delay=setting.delay, seed=seed
    )
    return plant, rate_per_s


def _scaled(network: Network, factor: float) -> Network:
    operators = tuple(replace(op, cost_s=op.cost_s * factor) for op in network.operators)
    return replace(network, operators=operators)


def _micro_batch(
    workload: str,
    rate: float | None,
    duration_s: float,
    target: Target,
    cost_s: float | None,
    noisy: bool,
    seed: int,
) -> tuple[SimulatedPlant, float]:
    cost = DISTURBED if noisy else BatchCost(scanned_s=DISTURBED.scanned_s)
    if cost_s is not None:
        cost = replace(cost, kept_s=cost_s)
    rate_per_s = rate if rate is not None else 1.5 / cost.kept_s
    arrivals = _arrivals(workload, rate_per_s, duration_s, seed)
    return MicroBatchPlant(Query(cost=cost), arrivals, target=target, seed=seed), rate_per_s


def _results(run: Run) -> dict[str, Any]:
    totals = run.totals
    return {
        "offered_tuples": totals.offered_tuples,
        "admitted_tuples": totals.admitted_tuples,
        "shed_tuples": totals.shed_tuples,
        "pending_tuples": totals.pending_tuples,
        "in_flight_tuples": totals.in_flight_tuples,
        "completed_tuples": totals.completed_tuples,
        "loss_ratio": run.loss_ratio,
        "mean_delay_s": run.mean_delay_s,
        "p95_delay_s": run.quantile_s(0.95),
        "p99_delay_s": run.quantile_s(0.99),
        "accumulated_violation_s": run.accumulated_violation_s,
        "delayed_tuples": run.delayed_tuples,
        "max_overshoot_s": run.max_overshoot_s,
    }


def _periods(run: Run) -> dict[str, list[float | int | None]]:
    return {name: [_plain(value) for value in getattr(run, name)] for name in PERIODS}


def _plain(value: np.int64 | np.float64) -> float | int | None:
    plain: float | int = value.item()
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _save(run: Run, out: Path, title: str) -> None:
    from spillway_lab.engine.picture import draw

    out.parent.mkdir(parents=True, exist_ok=True)
    draw(run, title).savefig(out, dpi=120)
    errors.print(f"saved {out}", highlight=False)

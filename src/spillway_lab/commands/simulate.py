"""`spillway simulate`: one load manager on one workload, in virtual time."""

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from spillway.cli.screen import errors, law_settings, print_json, print_table, progress_bar
from spillway.errors import require
from spillway.load import laws
from spillway.model import Target, parse_duration_s
from spillway.report import Table
from spillway.workloads import named
from spillway_lab.commands.asked import MICRO_BATCH, Asked, plant_of
from spillway_lab.commands.options import AsJson, Seed
from spillway_lab.engine.networks import SETTINGS
from spillway_lab.engine.run import Run, simulate

PERIODS = (
    *("time_s", "offered", "admitted", "shed", "completed", "queued"),
    *("delay_s", "target_s", "keep_fraction", "headroom", "cost_s"),
)

Manager = Annotated[str, typer.Option(help=f"load manager: {', '.join(laws.LAWS)}")]
NetworkName = Annotated[
    str, typer.Option(help=f"{', '.join(SETTINGS)}, or {MICRO_BATCH} (Spark's engine)")
]
Workload = Annotated[
    str, typer.Option(help=f"{', '.join(named.WORKLOADS)}, or a file of arrival times")
]
Rate = Annotated[
    float | None, typer.Option(help="tuples/s; default: 1.5 times what can be sustained")
]
Goal = Annotated[str, typer.Option(help="for example '2s' or 'p99 2s'")]
Duration = Annotated[str, typer.Option(help="virtual time, for example '100s'")]
Period = Annotated[str, typer.Option(help="control period")]
Cost = Annotated[str | None, typer.Option(help="pipeline time per tuple, for example '5ms'")]
Noisy = Annotated[bool, typer.Option(help="micro-batch: noise, pauses, warm-up and curvature")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="of the load manager: headroom=0.9")
]
Out = Annotated[Path | None, typer.Option(help="save a picture here (PNG)")]


def command(
    manager: Manager = "predictive",
    network: NetworkName = "ctrl",
    workload: Workload = "web",
    rate: Rate = None,
    target: Goal = "2s",
    duration: Duration = "100s",
    period: Period = "1s",
    cost: Cost = None,
    noisy: Noisy = False,
    setting: Settings = None,
    seed: Seed = 1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Run one load manager in virtual time and show what it does to delay and loss."""
    law = laws.make(manager, **law_settings(setting or []))
    duration_s = parse_duration_s(duration, "duration")
    period_s = parse_duration_s(period, "control period")
    require(seed >= 0, "seed", seed, "zero or above")
    require(out is None or out.suffix == ".png", "--out", str(out), "a file that ends in .png")
    asked = Asked(
        network=network,
        workload=workload,
        rate_per_s=rate,
        duration_s=duration_s,
        target=Target.parse(target),
        cost_s=None if cost is None else parse_duration_s(cost, "cost"),
        noisy=noisy,
        seed=seed,
    )
    plant, offered_per_s = plant_of(asked)
    with progress_bar("simulate") as progress:
        run = simulate(plant, law, duration_s, period_s, progress=partial(progress, manager))
    if out is not None:
        _save(run, out, f"{manager} on {network}, {workload} at {offered_per_s:.4g} tuples/s")
    _show(manager, asked, run, as_json)


def _show(manager: str, asked: Asked, run: Run, as_json: bool) -> None:
    network, workload, target = asked.network, asked.workload, str(asked.target)
    if as_json:
        chosen = {"manager": manager, "network": network, "workload": workload, "target": target}
        figures = {"results": _results(run), "periods": _periods(run)}
        print_json(chosen | {"seed": asked.seed} | figures)
        return
    title = f"{manager} on {network}, {workload}, target {target}"
    rows = list(_results(run).items())
    print_table(Table(title=title, columns=("figure", "value"), rows=rows))


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

"""`spillway reproduce`: the papers' experiments, side by side with what they printed."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.screen import console, errors, print_json, print_table, progress_bar
from spillway.errors import SpillwayError
from spillway.report import Table
from spillway_lab.commands.options import AsJson, Seed
from spillway_lab.experiments.registry import EXPERIMENTS
from spillway_lab.experiments.report import PlantName, Report, Setup


def command(
    name: Annotated[str | None, typer.Argument(help="an experiment; see --list")] = None,
    list_names: Annotated[bool, typer.Option("--list", help="name all experiments")] = False,
    on: Annotated[
        str | None, typer.Option("--on", help="plant: sim, spark or cluster; its first by default")
    ] = None,
    seed: Seed = 1,
    out: Annotated[Path | None, typer.Option(help="folder for the pictures and the JSON")] = None,
    as_json: AsJson = False,
    strict: Annotated[bool, typer.Option(help="exit 1 when a check does not hold")] = False,
) -> None:
    """Run an experiment of the papers and compare it with what they printed."""
    if list_names or name is None:
        _list(as_json)
        return
    experiment = EXPERIMENTS.find(name)
    plant = _plant(on, experiment.plants, name)
    with progress_bar(name) as progress:
        report = experiment.run(Setup(plant=plant, seed=seed, progress=progress))
    if out is not None:
        _save(report, out)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report, experiment.title, experiment.source)
    if strict and not all(check.holds for check in report.checks):
        raise typer.Exit(1)


def _list(as_json: bool) -> None:
    experiments = EXPERIMENTS.all().values()
    if as_json:
        print_json([{"name": e.name, "title": e.title, "source": e.source} for e in experiments])
        return
    rows = [(e.name, e.title, e.source, ", ".join(e.plants)) for e in experiments]
    print_table(Table(title="", columns=("name", "what it shows", "source", "plants"), rows=rows))


def _plant(on: str | None, allowed: tuple[PlantName, ...], name: str) -> PlantName:
    if on is None:
        return allowed[0]
    for plant in allowed:
        if plant == on:
            return plant
    raise SpillwayError(f"--on is '{on}': {name} runs on {' or '.join(allowed)}")


def _save(report: Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{report.experiment}-{report.setup.plant}"
    (out / f"{stem}.json").write_text(json.dumps(report.as_json(), indent=2) + "\n")
    for label, draw in report.pictures.items():
        suffix = f"-{label}" if label else ""
        draw().savefig(out / f"{stem}{suffix}.png", dpi=120)
    errors.print(f"saved in {out}", highlight=False)


def _show(report: Report, title: str, source: str) -> None:
    console.print(f"[bold]{report.experiment}[/bold]: {title} ({source})", highlight=False)
    for table in report.tables:
        print_table(table)
    if not report.checks:
        return
    rows = [
        (c.name, c.paper, c.here, "holds" if c.holds else "DOES NOT HOLD") for c in report.checks
    ]
    columns = ("check", "paper", "here", "")
    print_table(Table(title="paper and here, side by side", columns=columns, rows=rows))
    for check in report.checks:
        if check.remark:
            console.print(f"  {check.name}: {check.remark}", highlight=False)

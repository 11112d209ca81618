"""`spillway bench`: figures with the command that makes them."""

from typing import Annotated

import typer

from spillway.cli.screen import errors, print_json, print_table, progress_bar
from spillway.errors import SpillwayError
from spillway.report import Table
from spillway_lab.benchmarks.registry import BENCHMARKS, BenchSetup
from spillway_lab.commands.options import AsJson, Seed


def command(
    name: Annotated[str | None, typer.Argument(help="a benchmark; see --list")] = None,
    list_names: Annotated[bool, typer.Option("--list", help="name all benchmarks")] = False,
    on: Annotated[str | None, typer.Option(help="plant, for benchmarks that name one")] = None,
    only: Annotated[
        str | None, typer.Option(help="one part, for benchmarks that have them")
    ] = None,
    seed: Seed = 1,
    quick: Annotated[bool, typer.Option(help="a short run for a first look")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure; ratios are within one run, because machines are noisy."""
    if list_names or name is None:
        known = BENCHMARKS.all().values()
        if as_json:
            print_json([{"name": b.name, "title": b.title} for b in known])
        else:
            rows = [(b.name, b.title) for b in known]
            print_table(Table(title="", columns=("name", "what it measures"), rows=rows))
        return
    benchmark = BENCHMARKS.find(name)
    if on is not None and on not in benchmark.plants:
        allowed = " or ".join(benchmark.plants) or "one plant only: leave --on out"
        raise SpillwayError(f"--on is '{on}': {name} runs on {allowed}")
    if only is not None and only not in benchmark.parts:
        allowed = ", ".join(benchmark.parts) or "no parts: leave --only out"
        raise SpillwayError(f"--only is '{only}': {name} has {allowed}")
    with progress_bar(name) as progress:
        setup = BenchSetup(seed=seed, quick=quick, only=only, progress=progress)
        report = benchmark.run(setup)
    if as_json:
        details = {} if report.details is None else {"details": report.details}
        print_json({"benchmark": name, "seed": seed, "results": report.results, **details})
    for table in () if as_json else report.tables:
        print_table(table)
    for failure in report.failures:
        errors.print(f"spillway: {failure}", highlight=False)
    if report.failures:
        raise typer.Exit(1)

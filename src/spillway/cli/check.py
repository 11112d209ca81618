"""`spillway check`: is a flow file right, and what would run."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.screen import console, errors, print_json, print_table
from spillway.errors import SpillwayError
from spillway.report import Table


def check(
    flow_file: Annotated[Path | None, typer.Argument(help="the flow file (YAML)")] = None,
    schema: Annotated[bool, typer.Option(help="print the JSON Schema for editors")] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="ask Spark's own analyser as well; starts no query")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the plan as JSON only")] = False,
) -> None:
    """Check a flow file, without starting Spark if it is not asked, and print its plan."""
    from spillway.check.flow_file import load_flow
    from spillway.check.plan import plan_of
    from spillway.check.schema import flow_schema

    if schema:
        print_json(flow_schema())
        return
    if flow_file is None:
        raise SpillwayError("FLOW_FILE is missing: name a flow file, or use --schema")
    flow = load_flow(flow_file)
    plan = plan_of(flow)
    if spark:
        from spillway.hosts.spark.driver.analysing import analysed

        errors.print("starting Spark (8-10 s)", highlight=False)
        if found := analysed(flow):
            raise SpillwayError(*(f"{flow_file}: {said}" for said in found))
    if as_json:
        print_json(plan.as_json())
        return
    for title, columns, rows in plan.tables():
        print_table(Table(title=title, columns=columns, rows=rows))
    show_network(plan.network())
    console.print(f"{flow_file} is right", highlight=False)


def show_network(lines: list[str]) -> None:
    if lines:
        console.print("network", style="bold")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

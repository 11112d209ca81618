"""`spillway doctor`: what this machine has of what a run needs."""

from pathlib import Path
from typing import Annotated

import typer

from spillway.cli.screen import print_json, print_table
from spillway.report import Table


def doctor(
    brokers: Annotated[
        str | None, typer.Option(help="Kafka's HOST:PORT,..., to be asked as well")
    ] = None,
    folder: Annotated[Path, typer.Option(help="where a flow's state would be")] = Path(".spillway"),
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Look at Java, PySpark, extras, sockets, storage, clock, brokers; exit 1 if one is wrong."""
    from dataclasses import asdict

    from spillway.check.doctor import findings

    found = list(findings(brokers, folder))
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        rows = [(f.about, f.found, f.fix or "as it should be") for f in found]
        print_table(Table(title="", columns=("what", "found", "to do"), rows=rows))
    if any(finding.fix and finding.needed for finding in found):
        raise typer.Exit(1)

"""What every command prints with: one console, one form for tables, progress and JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from spillway.errors import SpillwayError, printable, shown
from spillway.report import Progress as Report
from spillway.report import Table

# Names come from files: nothing in them is markup, an emoji or something to be coloured.
console = Console(markup=False, emoji=False, highlight=False)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False)


def print_json(value: Any) -> None:
    """JSON alone on standard output, so that it can be piped."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def print_table(table: Table) -> None:
    drawn = RichTable(title=Text(printable(table.title)), title_justify="left")
    for column in table.columns:
        drawn.add_column(Text(printable(column)), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(_cell(value) for value in row))
    console.print(drawn)


def print_error(error: SpillwayError) -> None:
    """A line for each problem; what files held in them stays where it is."""
    for problem in error.problems:
        sys.stderr.write(f"spillway: {problem}\n")


def _cell(value: object) -> Text:
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        return Text(f"{value:.4g}")
    return Text(printable(str(value)))


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Progress on standard error, so that --json output stays clean."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0)

        def report(what: str, fraction: float) -> None:
            bar.update(task, description=f"{title}: {what}", completed=fraction)

        yield report


def law_settings(given: list[str]) -> dict[str, object]:
    """`--set name=value` of a load manager."""
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpillwayError(
                f"--set is '{shown(text)}': it must be name=value, such as headroom=0.9"
            )
        found[name.strip()] = value.strip()
    return found

"""What every command prints with: one console, one form for tables, progress and JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from spillway.errors import SpillwayError
from spillway.report import Progress as Report
from spillway.report import Table

console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """JSON alone on standard output, so that it can be piped."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def print_table(table: Table) -> None:
    shown = RichTable(title=escape(table.title), title_justify="left")
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        shown.add_row(*(_cell(value) for value in row))
    console.print(shown)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(printable(str(value)))


def printable(text: str) -> str:
    """One line of text that a file held: nothing in it commands the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Progress on standard error, so that --json output stays clean."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
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
            raise SpillwayError(f"--set is '{text}': it must be name=value, such as headroom=0.9")
        found[name.strip()] = value.strip()
    return found

"""A running flow on the screen: a live table, or on a pipe a line for each query now and then."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from spillway.cli.screen import errors
from spillway.errors import printable
from spillway.model import Target

if TYPE_CHECKING:
    from spillway.hosts.spark.driver.application import Application
    from spillway.hosts.spark.session.output import SparkOutput

LOOK_S = 0.5
LINES_S = 10.0  # between two rounds of lines where the output is no terminal
_COLUMNS = ("query", "class", "state", "target", "delay", "offered/s", "kept", "shed", "batch")
_LEFT = 3  # so many columns are words


class Progress:
    """How much of the time that a run was given is over; nothing while it begins."""

    def __init__(self) -> None:
        self._begun_s = 0.0
        self._seconds: float | None = None

    def counts(self, seconds: float | None) -> None:
        """From now on."""
        self._begun_s, self._seconds = time.monotonic(), seconds

    def __str__(self) -> str:
        if self._seconds is None:
            return ""
        return f"{time.monotonic() - self._begun_s:.0f} of {self._seconds:.0f} s"


@contextmanager
def watched(
    application: "Application", output: "SparkOutput", *, quiet: bool, screen: Console = errors
) -> Iterator[Progress]:
    """Show how it starts and runs, and what its planners and workers have to say."""
    ended, progress = threading.Event(), Progress()
    drawn = screen.is_terminal and not quiet
    live = Live(
        console=screen,
        refresh_per_second=4,
        transient=True,
        get_renderable=lambda: table(application, progress),
    )
    last_s = time.monotonic()

    def look() -> None:
        nonlocal last_s
        for line in output.news():
            screen.print(line, highlight=False, markup=False, soft_wrap=True)
        if not quiet and not drawn and time.monotonic() - last_s >= LINES_S:
            last_s = time.monotonic()
            for line in lines(application, progress):
                screen.print(line, highlight=False, markup=False, soft_wrap=True)

    def follow() -> None:
        while not ended.wait(LOOK_S):
            look()

    follower = threading.Thread(target=follow, name="spillway-screen", daemon=True)
    if drawn:
        live.start()
    follower.start()
    try:
        yield progress
    finally:
        ended.set()
        follower.join()
        if drawn:
            live.stop()
        look()


def table(application: "Application", progress: Progress) -> RichTable:
    title = "; ".join(filter(None, [str(progress), "Ctrl-C stops"]))
    shown = RichTable(title=title, title_justify="right")
    for number, column in enumerate(_COLUMNS):
        shown.add_column(column, justify="left" if number < _LEFT else "right")
    for row in _rows(application, recent_s=10.0):
        shown.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    shown.caption = Text("\n".join(map(printable, _notes(application)))) or None
    return shown


def lines(application: "Application", progress: Progress) -> list[str]:
    """One for each query, then what is unusual."""
    found = list(filter(None, [str(progress)]))
    for name, _, state, target, delay, offered, kept, _, batch in _rows(application, LINES_S):
        figures = f": delay {delay} of {target}, {offered}/s offered, kept {kept}, batch {batch}"
        found.append(f"{name} {state}{figures if delay != '-' else ''}")
    return found + _notes(application)


def _notes(application: "Application") -> list[str]:
    said = {**application.conditions, **application.states.catching_up()}
    return [f"{name}: {text}" for name, text in said.items() if text]


def _rows(application: "Application", recent_s: float) -> list[tuple[str | Text, ...]]:
    from spillway.hosts.spark.driver.progress import summarise as delays

    now_s = time.time()
    rows: list[tuple[str | Text, ...]] = []
    for name, query in application.flow.queries.items():
        target = application.target(query.class_name)
        batches = [b for b in application.delivered(name) if b.ended_s > now_s - recent_s]
        begins = (name, query.class_name, application.states.of(name), str(target))
        seen = delays(batches, target.delay_s)
        if seen is None:
            rows.append((*begins, "-", "-", "-", "-", "-"))
            continue
        delay_s = statistic_of(seen, target)
        colour = "green" if delay_s <= 1.05 * target.delay_s else "red"
        kept = seen.kept_tuples / max(1, seen.offered_tuples)
        rows.append(
            (
                *begins,
                Text(f"{delay_s:.2f} s", style=colour),
                f"{seen.offered_tuples / recent_s:,.0f}",
                f"{kept:.1%}",
                f"{1 - kept:.1%}",
                f"{seen.mean_batch_s:.2f} s",
            )
        )
    return rows


def statistic_of(seen: Any, target: Target) -> float:
    """The measured value of the statistic that the target names."""
    return float({"mean": seen.mean_s, "p95": seen.p95_s, "p99": seen.p99_s}[target.statistic])

"""`spillway top`: a running flow in another terminal."""

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spillway.cli.screen import console, print_json
from spillway.errors import SpillwayError, printable
from spillway.watch.client import Running, running_at
from spillway.watch.views import ClassView, QueryView, Snapshot

LOOK_S = 1.0
_COLOURS = {
    "good": "green",
    "shedding": "yellow",
    "late": "red",
    "missed": "red",
    "catching up": "magenta",
}
_KEYS = "1 classes  2 queries  3 decisions  4 events  q ends"


def top(
    place: Annotated[
        str, typer.Argument(help="the folder of a running flow, or its address (http://...)")
    ] = ".spillway",
    token: Annotated[
        Path | None, typer.Option(help="file of tokens; default: the one in the folder")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="print it once")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON once")] = False,
) -> None:
    """Watch a running flow: classes, queries, decisions and events."""
    running = running_at(place, token)
    if as_json:
        print_json(asdict(running.state()))
    elif once or not console.is_terminal:
        state = running.state()
        console.print(Group(_headline(state), _classes(state), _queries(state)))
    else:
        _follow(running)


def _follow(running: Running) -> None:
    """Until q; what cannot be asked right now is said below what was known last."""
    shown, asked_s, said = "1", 0.0, Text("")
    state = running.state()
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            if time.monotonic() - asked_s >= LOOK_S:
                asked_s = time.monotonic()
                try:
                    state, said = running.state(), Text("")
                except SpillwayError as error:
                    said = Text(str(error), style="red")
            body = _body(shown, state, running)
            live.update(Group(_headline(state), body, said, Text(_KEYS, style="dim")), refresh=True)
            key = pressed(LOOK_S)
            if key == "q":
                return
            shown = key if key in "1234" and key else shown


def _body(shown: str, state: Snapshot, running: Running) -> RenderableType:
    if shown == "2":
        return _queries(state)
    if shown == "3":
        try:
            return _decisions(running.decisions(limit=max(5, console.height - 8)))
        except SpillwayError as error:
            return Text(str(error), style="red")
    return _events(state) if shown == "4" else _classes(state)


def _headline(state: Snapshot) -> Text:
    worst = [c for c in state.classes if c.health not in ("good", "quiet")]
    text = Text(f"{state.flow} {state.state}, {state.cores} cores, policy {state.policy}\n")
    if not worst:
        return text.append("every class holds its target", style="green")
    for view in worst:
        line = f"{view.name}: {view.health}. {printable(view.why)}\n"
        text.append(line, style=_COLOURS.get(view.health, ""))
    return text


def _table(columns: str, words: int) -> Table:
    """Columns by name, the first so many of them words."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns.split("|")):
        is_word = number < words
        made.add_column(column, justify="left" if is_word else "right", no_wrap=not is_word)
    return made


def _classes(state: Snapshot) -> Table:
    made = _table("class|health|target|delay|offered/s|kept/s|shed/s|waiting|share", 3)
    for view in state.classes:
        made.add_row(*_class_row(view))
    return made


def _class_row(view: ClassView) -> Iterator[str | Text]:
    colour = _COLOURS.get(view.health, "dim")
    yield view.name
    yield Text(view.health, style=colour)
    yield view.target
    yield _seconds(view.pace.delay_s)
    for per_s in (view.pace.offered_per_s, view.pace.kept_per_s, view.pace.shed_per_s):
        yield _count(per_s)
    yield _count(view.pace.waiting_tuples)
    moved = view.quota - view.original
    lent = "" if abs(moved) < 0.005 else f" ({moved:+.0%})"
    yield f"{view.quota:.0%}{lent}"


def _queries(state: Snapshot) -> Table:
    made = _table("query|class|state|ledger|delay|batch|fixed|load|offered|shed|waiting", 4)
    for query in state.queries:
        made.add_row(*_query_row(query))
    return made


def _query_row(query: QueryView) -> Iterator[str]:
    yield query.name
    yield query.class_name
    yield query.state
    yield f"{query.audit.verdict} ({query.audit.batches})"
    yield _seconds(query.pace.delay_s)
    yield _seconds(query.batch.total_s if query.batch.batches else None)
    yield _seconds(query.batch.fixed_s if query.batch.batches else None)
    yield f"{query.load:.2f}"
    for count in (query.totals.offered, query.totals.shed, query.totals.waiting):
        yield _count(count)


def _decisions(found: list[dict[str, Any]]) -> Table:
    made = _table("time|query|reason", 3)
    for one in found:
        made.add_row(_clock(one["time_s"]), one["query"], printable(one["reason"]))
    return made


def _events(state: Snapshot) -> Table:
    made = _table("time|event", 2)
    for said in state.said[: max(5, console.height - 8)]:
        made.add_row(_clock(said.time_s), printable(said.text))
    return made


def _count(value: float) -> str:
    """Three digits and a letter: a terminal is narrow."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.0f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s).strftime("%H:%M:%S")


def _no_keys(wait_s: float) -> str:
    time.sleep(wait_s)
    return ""


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Single keys, without Enter; the terminal is as it was afterwards."""
    import termios
    import tty

    if not sys.stdin.isatty():
        yield _no_keys
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)

    def pressed(wait_s: float) -> str:
        ready, _, _ = select.select([sys.stdin], [], [], wait_s)
        return sys.stdin.read(1) if ready else ""

    try:
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

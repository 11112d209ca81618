"""`spillway replay`: a recorded run, decided again by another load manager."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spillway.cli.screen import console, print_json, print_table
from spillway.errors import SpillwayError
from spillway.report import Table


def replay(
    journal: Annotated[Path, typer.Argument(help="the journal of a run: journal.jsonl")],
    manager: Annotated[str, typer.Option(help="the load manager that decides now")],
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="of the load manager: headroom=0.9")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Decide a recorded run again, in virtual time: its arrivals, its prices, another law."""
    from spillway.hosts.virtual.replay import replayed
    from spillway.journal.entries import Event
    from spillway.journal.files import read_journal
    from spillway.load import laws
    from spillway.model import Decided

    settings = laws.checked(manager, _settings(setting or []))
    started: dict[str, Any] = {}
    decided = []
    for entry in read_journal(journal):
        if isinstance(entry, Decided):
            decided.append(entry)
        elif isinstance(entry, Event) and entry.kind == "started":
            started = dict(entry.fields)
    found = replayed(decided, manager, settings, started)
    rows = [
        (
            one.query,
            one.class_name,
            str(one.target),
            one.offered_tuples,
            one.recorded_delay_s,
            one.delay_s,
            one.recorded_kept_ratio,
            one.kept_ratio,
        )
        for one in found
    ]
    names = (
        *("query", "class", "target", "offered_tuples", "recorded_delay_s", "delay_s"),
        *("recorded_kept_ratio", "kept_ratio"),
    )
    if as_json:
        results = [dict(zip(names, row, strict=True)) for row in rows]
        print_json({"manager": manager, "results": results})
        return
    print_table(Table(title=f"{journal} under {manager}", columns=names, rows=rows))
    console.print("recorded: as it was; the others: as it would have been", highlight=False)


def _settings(given: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpillwayError(f"--set is '{text}': it must be name=value, such as headroom=0.9")
        found[name.strip()] = value.strip()
    return found

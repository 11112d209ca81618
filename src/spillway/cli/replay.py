"""`spillway replay`: a recorded run, decided again by another load manager."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spillway.cli.screen import console, print_json, print_table
from spillway.errors import SpillwayError
from spillway.report import Table

if TYPE_CHECKING:
    from spillway.hosts.virtual.replay import QueryReplay


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
    entries = list(read_journal(journal))
    begins = [e.fields for e in entries if isinstance(e, Event) and e.kind == "started"]
    decided = [entry for entry in entries if isinstance(entry, Decided)]
    found = [_row(one) for one in replayed(decided, manager, settings, (begins or [{}])[-1])]
    if as_json:
        print_json({"manager": manager, "results": found})
        return
    columns, rows = list(found[0]), [list(row.values()) for row in found]
    print_table(Table(title=f"{journal} under {manager}", columns=columns, rows=rows))
    console.print("recorded: as it was; the others: as it would have been", highlight=False)


def _row(one: "QueryReplay") -> dict[str, object]:
    return {
        "query": one.query,
        "class": one.class_name,
        "target": str(one.target),
        "offered_tuples": one.offered_tuples,
        "recorded_delay_s": one.recorded_delay_s,
        "delay_s": one.delay_s,
        "recorded_kept_ratio": one.recorded_kept_ratio,
        "kept_ratio": one.kept_ratio,
    }


def _settings(given: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpillwayError(f"--set is '{text}': it must be name=value, such as headroom=0.9")
        found[name.strip()] = value.strip()
    return found

"""`spillway replay`: a recorded run, decided again by another load manager."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.screen import console, law_settings, print_json, print_table
from spillway.errors import SpillwayError
from spillway.report import Table

if TYPE_CHECKING:
    from spillway.hosts.virtual.replay import QueryReplay


def replay(
    journal: Annotated[
        Path, typer.Argument(help="the journal of a run, or a file of option `record`")
    ],
    manager: Annotated[
        str | None, typer.Option(help="the load manager that decides now; a record needs none")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="of the load manager: headroom=0.9")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Decide a recorded run again, in virtual time: its arrivals, its prices, another law.

    What one gate was told (option `record`) is told again: are the offsets the same?
    """
    from spillway.hosts.virtual.replay import replayed
    from spillway.journal.entries import Event
    from spillway.journal.files import read_journal
    from spillway.load import laws
    from spillway.model import Decided

    if manager is None:
        _tell_again(journal, as_json)
        return
    settings = laws.checked(manager, law_settings(setting or []))
    started: Mapping[str, Any] = {}
    decided: list[Decided] = []
    for entry in read_journal(journal):
        if isinstance(entry, Decided):
            decided.append(entry)
        elif isinstance(entry, Event) and entry.kind == "started":
            started, decided = entry.fields, []  # the last run of several in one folder
    found = [_row(one) for one in replayed(decided, manager, settings, started)]
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


def _tell_again(record: Path, as_json: bool) -> None:
    import json

    from spillway.gate.told import told_again
    from spillway.journal.entries import DAMAGED
    from spillway.lines import whole_lines

    try:
        lines = [json.loads(line) for line in whole_lines(record)]
        pairs = list(told_again(lines))
        differ = [then["seq"] for then, now in pairs if then != now]
    except OSError as error:
        raise SpillwayError(f"there is no file at {record} ({error.strerror})") from error
    except DAMAGED as error:
        raise SpillwayError(
            f"{record} is no record of a gate: give a file of option 'record', or --manager for"
            " a journal"
        ) from error
    if as_json:
        print_json({"offsets": len(pairs), "differ": differ})
    else:
        same = "all the same" if not differ else f"batches {differ} differ"
        console.print(f"{len(pairs)} offsets told again: {same}", highlight=False)
    if differ:
        raise typer.Exit(1)

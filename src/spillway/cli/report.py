"""`spillway report`: a run as one HTML file."""

import math
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from spillway.cli.screen import console, print_json, progress_bar
from spillway.errors import SpillwayError


def report(
    folder: Annotated[Path, typer.Argument(help="the folder of `spillway run`")],
    since: Annotated[str | None, typer.Option(help="from then on: ISO 8601, UTC")] = None,
    until: Annotated[str | None, typer.Option(help="up to then: ISO 8601, UTC")] = None,
    out: Annotated[
        Path | None, typer.Option(help="the file; default report.html in the folder")
    ] = None,
    what_if: Annotated[
        bool, typer.Option(help="decide the last minutes again by other laws and targets")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the verdicts as JSON only")
    ] = False,
) -> None:
    """Say how a run went: verdicts, curves, what was shed and why, what would have been."""
    from spillway.watch.facts import facts_of
    from spillway.watch.report import page_of
    from spillway.watch.what_if import what_if as decided_again

    begin, end = moment(since, "--since", -math.inf), moment(until, "--until", math.inf)
    with progress_bar("report") as said:
        said("reading the journal", 0.1)
        facts = facts_of(folder, begin, end)
        if what_if:
            said("deciding again", 0.4)
            with suppress(SpillwayError):  # no prices were learned: nothing to decide with
                again = decided_again(facts.decided, facts.started)
                facts = replace(facts, what_if=again)
        path = out or folder / "report.html"
        _write(path, page_of(facts))
    if as_json:
        print_json({"file": str(path), "classes": [_row(one) for one in facts.classes]})
        return
    for one in facts.classes:
        console.print(f"{one.name} ({one.target}) {one.verdict}", highlight=False, markup=False)
    console.print(f"the report is {path}", highlight=False, markup=False)


def _row(one: Any) -> dict[str, object]:
    return {
        "class": one.name,
        "target": one.target,
        "verdict": one.verdict,
        "delay_s": one.delay_s,
        "late_ratio": one.late_ratio,
        "offered_tuples": one.offered_tuples,
        "shed_tuples": one.shed_tuples,
    }


def moment(text: str | None, option: str, otherwise: float) -> float:
    if text is None:
        return otherwise
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SpillwayError(
            f"{option} is '{text}': it must be a time such as 2026-01-31T12:00:00"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _write(path: Path, text: str) -> None:
    try:
        new = path.with_name(f"{path.name}.new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
    except OSError as error:
        raise SpillwayError(f"'{path}' cannot be written ({error.strerror}): give --out") from error

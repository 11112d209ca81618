"""`spillway ledger`: the audit of what was shed, without Spark."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from spillway.check.flow_file import load_flow
from spillway.cli.screen import console, errors, print_json, print_table
from spillway.errors import SpillwayError
from spillway.flow.stream_log import log_of
from spillway.gate.ledger import Audit, BatchAudit, shed_positions
from spillway.gate.offsets import Offset
from spillway.gate.shedders import blocks
from spillway.hosts.spark.ledger_files import audits, chains
from spillway.logs.dead_letters import dead_letter_totals, default_place
from spillway.report import Table

Shed = dict[int, npt.NDArray[np.int64]]  # by partition

_SHOWN = 20  # batches in the table; --json has them all


def ledger(
    path: Annotated[Path, typer.Argument(help="the ledger file of a gate")],
    checkpoint: Annotated[
        Path | None, typer.Option(help="Spark's checkpoint: compared, and used for what is missing")
    ] = None,
    positions: Annotated[
        int | None, typer.Option(metavar="BATCH", help="print the positions that a batch shed")
    ] = None,
    flow: Annotated[
        Path | None,
        typer.Option(help="with --positions: the flow file, where a shedder looked at the data"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Check that offered = admitted + shed + pending, per batch and in total; exit 1 if not."""
    if positions is not None:
        batches = [(o, _shed(o, flow)) for o in _batch(path, checkpoint, positions)]
        _print_positions(batches, as_json)
        return
    found = audits(path, checkpoint)
    if not found:
        raise SpillwayError(f"'{path}' holds no finished batch yet")
    if as_json:
        print_json({"gates": [_as_json(audit, path) for audit in found]})
    else:
        for audit in found:
            _show(audit)
            _show_dead_letters(audit, path)
    if not all(audit.exact for audit in found):
        raise typer.Exit(1)


def _batch(path: Path, checkpoint: Path | None, seq: int) -> list[Offset]:
    every = [o for chain in chains(path, checkpoint).values() for o in chain]
    found = [offset for offset in every if offset.seq == seq]
    if not found:
        known = sorted({offset.seq for offset in every})
        span = f"{known[0]} to {known[-1]}" if known else "none"
        raise SpillwayError(f"batch {seq} is not in the ledger: it has {span}")
    return found


def _shed(offset: Offset, flow: Path | None) -> Shed:
    """By partition. A shedder that looked at the data has to look again."""
    if offset.rule.selection is None:
        return dict(shed_positions(offset))
    if flow is None:
        raise SpillwayError(
            f"shedder '{offset.rule.selection.name}' looked at the data of batch {offset.seq}:"
            " name the flow file with --flow, so that its log can be read again"
        )
    log = log_of(load_flow(flow), offset.gate, offset.pinned)
    return {s.partition: blocks.shed_positions(s, offset.rule, log) for s in offset.stretches}


def _print_positions(batches: list[tuple[Offset, Shed]], as_json: bool) -> None:
    if as_json:
        shed = [
            {
                "gate": offset.gate,
                "batch": offset.seq,
                "shed": {str(partition): where.tolist() for partition, where in found.items()},
            }
            for offset, found in batches
        ]
        print_json({"batches": shed})
        return
    for _, found in batches:
        for partition, where in found.items():
            for position in where:
                print(f"{partition}\t{position}")


def _as_json(audit: Audit, path: Path) -> dict[str, Any]:
    totals = audit.totals
    return {
        "gate": audit.gate,
        "began_us": audit.began_us,
        "exact": audit.exact,
        "total": {
            "offered": totals.offered,
            "admitted": totals.admitted,
            "shed": totals.shed,
            "pending": totals.pending,
            "lost": totals.lost,
        },
        "dead_letters": dead_letter_totals(default_place(audit.gate, str(path))),
        "missing": list(audit.missing),
        "problems": list(audit.problems),
        "batches": [
            {
                "batch": b.seq,
                "planned_us": b.planned_us,
                "offered": b.offered,
                "admitted": b.admitted,
                "shed": b.shed,
                "pending": b.pending,
                "keep_ppm": b.keep_ppm,
                "reason": b.reason,
            }
            for b in audit.batches
        ],
    }


def _show(audit: Audit) -> None:
    last = audit.batches[-_SHOWN:]
    columns = ("batch", "planned", "offered", "admitted", "shed", "pending", "reason")
    title = f"gate {audit.gate}: {len(audit.batches)} batches, the last {len(last)}"
    print_table(Table(title=title, columns=columns, rows=[_row(batch) for batch in last]))
    totals = audit.totals
    console.print(
        f"offered {totals.offered} = admitted {totals.admitted} + shed {totals.shed}"
        f" + pending {totals.pending}" + (f" ({totals.lost} lost)" if totals.lost else ""),
        highlight=False,
    )
    for problem in audit.problems:
        errors.print(f"spillway: {problem}", highlight=False, markup=False)
    if audit.missing:
        shown = ", ".join(map(str, audit.missing[:10]))
        more = f" and {len(audit.missing) - 10} more" if len(audit.missing) > 10 else ""
        errors.print(
            f"spillway: batches {shown}{more} have no line; the totals are those of the last line;"
            " --checkpoint may still have them",
            highlight=False,
        )
    if audit.exact:
        console.print("exact: every batch adds up", highlight=False)


def _show_dead_letters(audit: Audit, path: Path) -> None:
    place = default_place(audit.gate, str(path))
    totals = dead_letter_totals(place)
    if any(totals.values()):
        console.print(
            f"of the admitted, {totals['malformed']} were malformed and {totals['lost']} had left"
            f" the log before they were read: {place}",
            highlight=False,
        )


def _row(batch: BatchAudit) -> tuple[object, ...]:
    planned = datetime.fromtimestamp(batch.planned_us / 1e6, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
    counts = (batch.offered, batch.admitted, batch.shed, batch.pending)
    return (batch.seq, planned, *counts, batch.reason)

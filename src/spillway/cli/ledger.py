"""`spillway ledger`: the audit of what was shed, without Spark."""

import json
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from spillway.check.flow_file import load_flow
from spillway.cli.periods import as_json as periods_as_json
from spillway.cli.periods import periods, table_of
from spillway.cli.recount import NOT_LOOKED, Recount, recount
from spillway.cli.screen import console, errors, print_json, print_table
from spillway.errors import SpillwayError, printable
from spillway.flow.stream_log import log_of
from spillway.gate.ledger import Audit, BatchAudit, Life, shed_positions
from spillway.gate.offsets import Gap, Offset
from spillway.gate.shedders import blocks
from spillway.hosts.spark.files import Extent, audited, batches_of, offsets_of
from spillway.logs.dead_letters import dead_letter_totals, default_root, place_of
from spillway.report import Table
from spillway.storage import Place, place_at

Shed = dict[int, npt.NDArray[np.int64]]  # by partition

_SHOWN = 20  # batches in the table; --json has them all
_DAY_AND_TIME = "%Y-%m-%d %H:%M:%S.%f"


@dataclass(frozen=True, kw_only=True)
class _Look:
    """One life of a gate, and what a second look at its log says of it."""

    life: Life
    audit: Audit
    place: Extent
    counted: Recount


def ledger(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="the ledger of a gate: a file, or a URI")
    ],
    checkpoint: Annotated[
        str | None, typer.Option(help="Spark's checkpoint: compared, and used for what is missing")
    ] = None,
    positions: Annotated[
        int | None, typer.Option(metavar="BATCH", help="print the positions that a batch shed")
    ] = None,
    flow: Annotated[
        Path | None,
        typer.Option(help="the flow file: where a shedder looked at the data, so does the audit"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="hour or day: what was, or would have been, shed in each")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Check that offered = admitted + shed + pending, per batch and in total; exit 1 if not."""
    at, logged = place_at(path), None if checkpoint is None else place_at(checkpoint)
    if positions is not None:
        batches = [(o, _shed(o, flow)) for o in _batch(at, logged, positions)]
        _print_positions(batches, as_json)
        return
    if by is not None:
        seen = periods(offsets_of(at, logged), by)
        print_json(periods_as_json(seen)) if as_json else print_table(table_of(seen, by))
        return
    found = _looked_at(at, logged, flow)
    if not found:
        raise SpillwayError(f"'{path}' holds no finished batch yet")
    if as_json:
        _print_json(found, at, logged)
    else:
        for look in found:
            _show(look.audit, look.counted)
            _show_dead_letters(look.audit, at)
    if not all(look.audit.exact for look in found):
        raise typer.Exit(1)


def _looked_at(path: Place, checkpoint: Place | None, flow: Path | None) -> list[_Look]:
    found = audited(path, checkpoint, _SHOWN)
    loaded = load_flow(flow) if flow and any(a.measured_batches for a, _ in found) else None
    looks = []
    for audit, place in found:
        life, counted = (audit.gate, audit.began_us), NOT_LOOKED
        if loaded is not None and audit.measured_batches > 0:
            offsets = (offset for offset, _ in batches_of(life, path, checkpoint, place))
            counted = recount(offsets, loaded, audit.gate, audit.pinned)
            audit = replace(audit, problems=audit.problems + counted.problems)
        looks.append(_Look(life=life, audit=audit, place=place, counted=counted))
    return looks


def _batch(path: Place, checkpoint: Place | None, seq: int) -> list[Offset]:
    found: dict[Life, Offset] = {}
    known: set[int] = set()  # the first and the last
    for offset in offsets_of(path, checkpoint):
        known = {min(known | {offset.seq}), max(known | {offset.seq})}
        if offset.seq == seq:
            found.setdefault((offset.gate, offset.began_us), offset)
    if not found:
        span = f"{min(known)} to {max(known)}" if known else "none"
        raise SpillwayError(f"batch {seq} is not in the ledger: it has {span}")
    return list(found.values())


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


def _print_json(found: list[_Look], path: Place, checkpoint: Place | None) -> None:
    """{"gates": [...]}, a batch at a time: a ledger may be longer than memory."""
    for number, look in enumerate(found):
        head = _json_of(_as_json(look.audit, look.counted, path)).removesuffix("}")
        sys.stdout.write('{"gates": [\n' if number == 0 else ",\n")
        sys.stdout.write(head + ', "batches": [')
        opening = "\n"
        for _, batch in batches_of(look.life, path, checkpoint, look.place):
            sys.stdout.write(opening + _json_of(_batch_as_json(batch)))
            opening = ",\n"
        sys.stdout.write("]}")
    sys.stdout.write("\n]}\n")


def _json_of(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _as_json(audit: Audit, looked: Recount, path: Place) -> dict[str, Any]:
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
        "dead_letters": dead_letter_totals(_dead_letters(audit, path)),
        "measured": {
            "batches": audit.measured_batches,
            "checked": looked.checked,
            "gone": looked.gone,
        },
        "missing": list(audit.missing),
        "missing_count": audit.missing_count,
        "problems": list(audit.problems),
    }


def _batch_as_json(batch: BatchAudit) -> dict[str, Any]:
    return {
        "batch": batch.seq,
        "planned_us": batch.planned_us,
        "offered": batch.offered,
        "admitted": batch.admitted,
        "shed": batch.shed,
        "pending": batch.pending,
        "keep_ppm": batch.keep_ppm,
        "reason": batch.reason,
        "measured": batch.measured,
        "unread": batch.unread,
        "gap": None if batch.gap is None else asdict(batch.gap),
    }


def _show(audit: Audit, looked: Recount) -> None:
    last, name = audit.batches, printable(audit.gate)
    columns = ("batch", "planned", "offered", "admitted", "shed", "pending", "reason")
    title = f"gate {name}: {audit.batch_count} batches, the last {len(last)}"
    print_table(Table(title=title, columns=columns, rows=[_row(batch) for batch in last]))
    totals = audit.totals
    console.print(
        f"offered {totals.offered} = admitted {totals.admitted} + shed {totals.shed}"
        f" + pending {totals.pending}" + (f" ({totals.lost} lost)" if totals.lost else ""),
        highlight=False,
    )
    _show_gaps(audit)
    for problem in audit.problems:
        errors.print(f"spillway: {problem}", highlight=False, markup=False)
    if audit.missing:
        shown = ", ".join(map(str, audit.missing[:10]))
        more = f" and {audit.missing_count - 10} more" if audit.missing_count > 10 else ""
        errors.print(
            f"spillway: batches {shown}{more} have no line; the totals are those of the last line;"
            " --checkpoint may still have them",
            highlight=False,
        )
    if audit.exact:
        console.print("exact: every batch adds up", highlight=False)
    _show_measured(audit, looked)


def _show_gaps(audit: Audit) -> None:
    if audit.gap_count > 0:
        said = f"{audit.unread_tuples} were never read, in {audit.gap_count} gaps"
        more = f", the last {len(audit.gaps)}:" if audit.gap_count > len(audit.gaps) else ""
        console.print(said + more, highlight=False)
    for batch in audit.gaps:
        arrived = "" if batch.gap is None else f", arrived {_span(batch.gap)}"
        console.print(f"  batch {batch.seq}: {batch.unread} unread{arrived}", highlight=False)


def _span(gap: Gap) -> str:
    until = _at(gap.until_us, _DAY_AND_TIME)
    if gap.from_us == 0:
        return f"up to {until}"
    return f"from {_at(gap.from_us, _DAY_AND_TIME)} to {until}"


def _show_measured(audit: Audit, looked: Recount) -> None:
    left = audit.measured_batches - looked.checked - looked.gone
    if looked.checked or looked.gone:
        gone = f"; of {looked.gone} the log has no longer what they read" if looked.gone else ""
        line = f"{looked.checked} batches were counted again in the log{gone}"
        console.print(line, highlight=False)
    if left > 0:
        console.print(
            f"of {left} batches the shedder counted in the data what it kept: measured, and not"
            " checked; --flow FILE reads the log again",
            highlight=False,
        )


def _dead_letters(audit: Audit, path: Place) -> str:
    return place_of(default_root(str(path)), audit.gate, audit.began_us)


def _show_dead_letters(audit: Audit, path: Place) -> None:
    place = _dead_letters(audit, path)
    totals = dead_letter_totals(place)
    if any(totals.values()):
        console.print(
            f"of the admitted, {totals['malformed']} were malformed and {totals['lost']} had left"
            f" the log before they were read: {printable(place)}",
            highlight=False,
            markup=False,
        )


def _row(batch: BatchAudit) -> tuple[object, ...]:
    planned = _at(batch.planned_us, "%H:%M:%S.%f")
    counts = (batch.offered, batch.admitted, batch.shed, batch.pending)
    return (batch.seq, planned, *counts, batch.reason)


def _at(time_us: int, form: str) -> str:
    """To the millisecond."""
    try:
        return datetime.fromtimestamp(time_us / 1e6, tz=UTC).strftime(form)[:-3]
    except (ValueError, OverflowError, OSError):  # after the year 9999
        return f"{time_us} us"

"""`spillway backfill`: what was shed is processed later, while the log still has it."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.report import moment
from spillway.cli.screen import console, errors, print_json
from spillway.errors import SpillwayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spillway.flow.flow import Flow
    from spillway.hosts.spark.driver.backfill import Plan
    from spillway.hosts.spark.files import Folder

_LOWEST = 19  # of the system: whatever else runs comes first


def backfill(
    folder: Annotated[Path, typer.Argument(help="the folder of `spillway run`")],
    query: Annotated[str, typer.Option(help="the query whose answer is computed again")],
    since: Annotated[
        str | None, typer.Option("--from", help="shed tuples that arrived from then on: ISO 8601")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="and before then; times without a zone are UTC")
    ] = None,
    flow: Annotated[
        Path | None, typer.Option(help="the flow file; default FLOW.yaml for .spillway/FLOW")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="say what would be computed, and no more")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON only")] = False,
) -> None:
    """Compute again what shedding has changed: windows from all their rows, or the rows alone."""
    span = moment(since, "--from", -math.inf), moment(until, "--to", math.inf)
    if span[0] >= span[1]:
        raise SpillwayError(f"--from is '{since}' and --to '{until}': give a later --to")
    told = _done(folder, flow or _flow_file(folder), query, span, dry_run=dry_run, quiet=as_json)
    if as_json:
        print_json(told)
    elif "written" in told:
        said = f"{told['rows']:,} rows went to {told['written']}"
        console.print(said, highlight=False, markup=False)


def _done(
    root: Path, file: Path, query: str, span: tuple[float, float], *, dry_run: bool, quiet: bool
) -> dict[str, Any]:
    """What was found and what was done."""
    from spillway.check.flow_file import load_flow
    from spillway.clock import WallClock
    from spillway.hosts.spark.driver.backfill import Backfill
    from spillway.hosts.spark.files import Folder

    flow, folder = load_flow(file), Folder(root=root.absolute())
    work = Backfill(flow, folder, query, WallClock().now_s())
    plan = work.plan(*span)
    told = _told(plan)
    if not quiet:
        _show(plan)
    if dry_run or not plan.has_work:
        return told
    with _session(flow, folder) as spark:
        found = work.result(plan, spark, *span).persist()
        return told | {"rows": found.count(), "written": work.write(plan, found, *span)}


def _flow_file(folder: Path) -> Path:
    found = Path(f"{folder.absolute().name}.yaml")
    if not found.exists():
        raise SpillwayError(f"there is no {found} here: give the flow file of {folder} with --flow")
    return found


@contextmanager
def _session(flow: "Flow", folder: "Folder") -> "Iterator[SparkSession]":
    """Below everything else that this machine does."""
    from spillway.hosts.spark.session.output import SparkOutput
    from spillway.hosts.spark.session.session import open_session

    os.nice(_LOWEST)
    errors.print("starting Spark (8-10 s), below everything else on this machine", highlight=False)
    output = SparkOutput(folder.root / "backfill.log")
    given = {key: str(value) for key, value in flow.spark.config.items()}
    spark = open_session(flow.spark.master, given, name="spillway backfill", output=output)
    try:
        yield spark
    finally:
        spark.stop()


def _told(plan: "Plan") -> dict[str, Any]:
    window = plan.repair.window
    return {
        "query": plan.query,
        "shed_tuples": plan.shed_tuples,
        "gone_tuples": plan.gone_tuples,
        "windows": [_iso(us) for us in plan.windows_us],
        "window_s": None if window is None else window.length_us / 1e6,
        "open_windows": plan.open_windows,
        "gone_windows": plan.gone_windows,
    }


def _show(plan: "Plan") -> None:
    lines = [f"{plan.query}: {plan.shed_tuples:,} tuples were shed and are still in the log"]
    if plan.gone_tuples:
        lines.append(f"{plan.gone_tuples:,} that the query shed are no longer in the log")
    if plan.windows_us:
        first, last = _iso(plan.windows_us[0]), _iso(plan.windows_us[-1])
        lines.append(f"{len(plan.windows_us):,} windows lost something, from {first} to {last}")
    if plan.open_windows:
        lines.append(f"{plan.open_windows:,} more are not closed yet: run it again later")
    if plan.gone_windows:
        lines.append(f"{plan.gone_windows:,} more are left as they are: rows of theirs are gone")
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _iso(time_us: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat()

"""`spillway run`: a flow on Spark, with a live table and a summary."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.screen import console, errors, print_json, print_table
from spillway.cli.watch import statistic_of, watched
from spillway.model import parse_duration_s
from spillway.report import Table
from spillway.watch.serving import INSTALL, Door, is_installed, opened_door, served

if TYPE_CHECKING:
    from spillway.flow.flow import Flow
    from spillway.hosts.cluster.in_place import InPlace
    from spillway.hosts.spark.driver.application import Application

WARM_UP_S = 20.0  # Java compiles: batches take several times as long as later


def run(
    flow_file: Annotated[Path, typer.Argument(help="the flow file (YAML)")],
    duration: Annotated[
        str | None, typer.Option(help="stop after this time, for example 60s; default: Ctrl-C")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="checkpoints, ledgers and journal; default .spillway/FLOW"),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master; wins over the flow")] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of page, API and metrics; off; default a port of loopback"),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="folder of tokens, tls.crt, tls.key; default: tokens in the flow's"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON only")] = False,
) -> None:
    """Run a flow until Ctrl-C or --duration; every tuple is accounted for when it stops."""
    from spillway.check.flow_file import load_flow

    flow = load_flow(flow_file)
    seconds = None if duration is None else parse_duration_s(duration, "--duration")
    root = folder or Path(".spillway") / flow_file.stem
    door = opened_door(root, listen, keys)
    application = run_flow(
        flow, flow_file.stem, root, seconds, master=master, quiet=as_json, door=door
    )
    summary = summarise(application)
    if as_json:
        print_json(summary)
    else:
        show_summary(summary, root)


def run_flow(
    flow: "Flow",
    name: str,
    root: Path,
    seconds: float | None,
    *,
    master: str | None = None,
    quiet: bool = False,
    door: Door | None = None,
) -> "Application":
    """Run a flow to its end and hand back what it measured."""
    if (root / "checkpoints").exists():
        errors.print(
            f"goes on where {root} stopped, with what has arrived since; remove it to begin anew",
            highlight=False,
        )
    errors.print("starting Spark (8-10 s)", highlight=False)
    from spillway.hosts.cluster.in_place import InPlace
    from spillway.hosts.cluster.versions import Versions
    from spillway.hosts.spark.driver.running import begin, opened

    versions = Versions(flow, root)
    for query, given in versions.given.items():
        if given.generation > 1:
            errors.print(
                f"query '{query}' goes on as it was changed while it ran (its checkpoint is"
                f" {query}@{given.generation}); `spillway query change {query} --back` returns"
            )
    # Standard output is for the summary alone where that is JSON; results of queries give way.
    results = redirect_stdout(sys.stderr) if quiet else nullcontext()
    with results, opened(versions.running(flow), name, root, master) as (application, output):
        changes = InPlace(application, flow, versions)
        errors.print(f"what Spark prints is in {_near(output.path)}", highlight=False)
        with _seen(application, name, door), watched(application, output, quiet=quiet) as screen:
            begin(application)
            screen.counts(seconds)
            _supervise(changes, seconds)
        errors.print("stopping", highlight=False)
    return application


@contextmanager
def _seen(application: "Application", name: str, door: Door | None) -> Iterator[None]:
    """Served to whoever comes in by the door."""
    if door is None:
        if not is_installed():
            errors.print(f"no page and no metrics without a web server: {INSTALL}", highlight=False)
        yield
        return
    with served(application, name, door) as url:
        errors.print(f"watch it at {url}", highlight=False)
        yield


def _supervise(changes: "InPlace", seconds: float | None) -> None:
    """Until the time is over or the user stops it."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    ends = None if seconds is None else time.monotonic() + seconds
    try:
        while not stopped.wait(changes.look_s) and (ends is None or time.monotonic() < ends):
            changes.supervise()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _near(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def summarise(application: "Application") -> dict[str, Any]:
    """What the whole run delivered, per query; `settled`: without the first WARM_UP_S."""
    from spillway.hosts.spark.driver.progress import summarise as delays

    queries: dict[str, Any] = {}
    every = list(application.batches)
    warm_s = min((b.ended_s - b.duration_s for b in every), default=0.0) + WARM_UP_S
    for name, query in application.flow.queries.items():
        target = application.target(query.class_name)
        batches = [b for b in every if b.gate.startswith(f"{name}/")]
        seen = delays(batches, target.delay_s)
        settled = delays([b for b in batches if b.ended_s > warm_s], target.delay_s)
        judged = settled or seen
        queries[name] = {
            "class": query.class_name,
            "target": str(target),
            "restarts": application.restarts(name),
            "delivered": None if seen is None else asdict(seen),
            "settled": None if settled is None else asdict(settled),
            "budget": application.conditions.get(f"queries.{name}"),
            "within_target": judged is not None
            and statistic_of(judged, target) <= 1.05 * target.delay_s,
        }
    return {"queries": queries}


def show_summary(summary: dict[str, Any], root: Path) -> None:
    rows: list[tuple[str, ...]] = []
    warm = any(query["settled"] for query in summary["queries"].values())
    for name, query in summary["queries"].items():
        seen = query["settled" if warm else "delivered"]
        if seen is None:
            rows.append((name, query["target"], "nothing delivered", "", "", ""))
            continue
        shed = 1.0 - seen["kept_tuples"] / max(1, seen["offered_tuples"])
        delays = f"{seen['mean_s']:.2f} / {seen['p95_s']:.2f} / {seen['p99_s']:.2f} s"
        batches = f"{seen['batches']} x {seen['mean_batch_s']:.2f} s"
        offered = f"{seen['offered_tuples']:,}"
        rows.append((name, query["target"], delays, offered, f"{shed:.1%}", batches))
    columns = ("query", "target", "mean / p95 / p99 delay", "offered", "shed", "batches")
    after = f" after the first {WARM_UP_S:.0f} s, in which Java warms up" if warm else ""
    print_table(Table(title=f"delivered{after}", columns=columns, rows=rows))
    for name, query in summary["queries"].items():
        if query["budget"]:
            console.print(f"{name}: {query['budget']}", highlight=False)
    console.print(f"ledgers and journal are in {root}", highlight=False)

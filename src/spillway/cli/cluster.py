"""`spillway cluster` and `spillway query`: one flow on many nodes."""

import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from spillway.cli.changes import FALLBACK, change_here, moves_of, say_change, text_of
from spillway.cli.screen import console, errors, print_json, print_table
from spillway.errors import SpillwayError
from spillway.model import parse_duration_s
from spillway.watch.serving import opened_door, shown

if TYPE_CHECKING:
    from spillway.hosts.cluster.opening import Place

cluster = typer.Typer(help="Run one flow on many nodes.", no_args_is_help=True)
query = typer.Typer(help="Add, stop and change queries while they run.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="the cluster file: a flow file with a section cluster")]
Of = Annotated[Path, typer.Option("--cluster", help="the cluster file")]
Listen = Annotated[
    str | None,
    typer.Option(help="HOST:PORT of page, API and metrics; off; default a port of loopback"),
]
Keys = Annotated[Path | None, typer.Option(help="folder of tokens, tls.crt, tls.key")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON only")]


def place_in(file: Path) -> "Place":
    from spillway.check.flow_file import load_as_written, load_flow
    from spillway.hosts.cluster.opening import place_of

    load_flow(file)  # what is wrong with it, and what it refers to and is not there, is told here
    return place_of(file, load_as_written(file))


def _ask(file: Path, as_json: bool, **request: Any) -> None:
    from spillway.hosts.cluster.asking import ask
    from spillway.hosts.cluster.messages import Request

    done = ask(place_in(file), Request(**request))
    if as_json:
        print_json({"done": done})
    else:
        console.print(done, highlight=False)


def say(text: str) -> None:
    stamp = time.strftime("%H:%M:%S")
    errors.print(f"{stamp} {text}", highlight=False, markup=False, soft_wrap=True)


@cluster.command()
def run(
    file: File,
    advise: Annotated[bool, typer.Option(help="decide and journal, carry out nothing")] = False,
    listen: Listen = None,
    keys: Keys = None,
) -> None:
    """Coordinate a cluster. A second one stands by; Ctrl-C on the leader stops the cluster."""
    from spillway.hosts.cluster.coordinating import Coordinating

    place, stop = place_in(file), threading.Event()
    coordinating = Coordinating(place, say, advises=advise)
    asked = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM or asked.is_set() or not coordinating.leads:
            stop.set()
        else:
            asked.set()
            say("the cluster stops; again: only this coordinator does, and the nodes go on")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with ExitStack() as stack:
        if (door := opened_door(place.folder, listen, keys)) is not None:
            from spillway.watch.cluster import ClusterWatch

            watch = ClusterWatch(place)
            coordinating.listeners.append(watch.entry)
            say(f"watch it at {stack.enter_context(shown(watch, door, place.folder / 'watch'))}")
        coordinating.run(stop, asked)


@cluster.command()
def check(file: File, as_json: AsJson = False) -> None:
    """Check a cluster file and its control log; nothing is started."""
    from spillway.check.flow_file import load_flow
    from spillway.check.plan import plan_of
    from spillway.cli.check import show_network
    from spillway.hosts.cluster.written import said_of

    place = place_in(file)
    plan = plan_of(load_flow(file))
    place.reports().read(0)
    place.assignments().read(0)
    moves = moves_of(place)
    if as_json:
        print_json({**plan.as_json(), "cluster": said_of(place.cluster), "moves": moves})
        return
    show_network(plan.network())
    wanted = place.cluster
    console.print(
        f"{file} is right: {len(plan.queries)} queries on {wanted.fewest} to {wanted.most} nodes of"
        f" {wanted.cores} task slots; its control log answers",
        highlight=False,
    )
    for name, why in moves.items():
        way = f"query '{name}' moves while it runs" if why is None else f"{why}: {FALLBACK}"
        console.print(way, highlight=False)


@cluster.command()
def status(
    file: File,
    watch: Annotated[bool, typer.Option(help="again every second, until Ctrl-C")] = False,
    as_json: AsJson = False,
) -> None:
    """Nodes, queries and moves under way."""
    from spillway.hosts.cluster.status import Status, tables

    found = Status(place_in(file))
    while True:
        now = found.now()
        if as_json:
            print_json(now)
        else:
            if watch:
                console.clear()
            for table in tables(now):
                print_table(table)
        if not watch:
            return
        time.sleep(1.0)


@cluster.command("set")
def set_setting(
    change: Annotated[str, typer.Argument(help="CLASS.SETTING=VALUE, such as gold.delay=1s")],
    file: Of,
    as_json: AsJson = False,
) -> None:
    """Change priority, delay or lend of a class on all nodes; tables=none turns tables off."""
    key, equals, value = change.partition("=")
    if not equals or not value:
        raise SpillwayError(f"'{change}' is no change: write CLASS.SETTING=VALUE")
    _ask(file, as_json, kind="set", name=key, value=value)


@cluster.command()
def move(
    query: Annotated[str, typer.Argument(help="the query")],
    node: Annotated[str, typer.Argument(help="where it goes")],
    file: Of,
    restart: Annotated[
        bool, typer.Option(help="stop it there and start it here, even if it can move running")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move a query to another node, while it runs where it can."""
    _ask(file, as_json, kind="move", name=query, value=node, stops_first=restart)


@cluster.command()
def drain(
    node: Annotated[str, typer.Argument(help="the node")], file: Of, as_json: AsJson = False
) -> None:
    """Give a node's queries to the others, then stop it."""
    _ask(file, as_json, kind="drain", name=node)


@cluster.command()
def stop(file: File, wait: Annotated[str, typer.Option(help="at most")] = "60s") -> None:
    """Stop all nodes and coordinators; the next `cluster run` goes on where they stopped."""
    from spillway.hosts.cluster.asking import ask
    from spillway.hosts.cluster.messages import Request
    from spillway.hosts.cluster.status import Status

    place, wait_s = place_in(file), parse_duration_s(wait, "--wait")
    console.print(ask(place, Request(kind="end")), highlight=False)
    found, deadline_s = Status(place), time.monotonic() + wait_s
    while (left := found.now())["nodes"] or left["leader"]:
        if time.monotonic() > deadline_s:
            raise SpillwayError(f"not stopped within {wait}: {', '.join(left['nodes'])} still run")
        time.sleep(0.5)
    console.print("all nodes have stopped", highlight=False)


@cluster.command()
def audit(file: File, as_json: AsJson = False) -> None:
    """All ledgers of all nodes together: offered = admitted + shed + pending, to the tuple."""
    from spillway.hosts.cluster.status import audit_rows

    rows = audit_rows(place_in(file))
    exact = all(row["exact"] for row in rows)
    if as_json:
        print_json({"exact": exact, "queries": rows})
    else:
        for row in rows:
            twice = f", {row['overlap']:,} of them twice" if row["overlap"] else ""
            said = "exact" if row["exact"] else "; ".join(row["problems"]) or "batches are missing"
            console.print(
                f"{row['query']}/{row['stream']}: offered {row['offered']:,}{twice} = admitted"
                f" {row['admitted']:,} + shed {row['shed']:,} + pending {row['pending']:,} over"
                f" {row['ledgers']} ledgers: {said}",
                highlight=False,
            )
    if not exact:
        raise typer.Exit(1)


@query.command("add")
def add_query(
    file: Annotated[Path, typer.Argument(help="YAML: queries: {NAME: {...}}")],
    of: Of,
    on: Annotated[str, typer.Option(help="a node; wherever there is room by default")] = "",
    as_json: AsJson = False,
) -> None:
    """Add queries to a running cluster."""
    from spillway.hosts.cluster.written import require_references

    added = _queries_in(file)
    require_references({"queries": added})
    for name, body in added.items():
        _ask(of, as_json, kind="add", name=name, value=on, query=body)


@query.command("stop")
def stop_query(
    name: Annotated[str, typer.Argument(help="the query")], of: Of, as_json: AsJson = False
) -> None:
    """Stop a query for good; its checkpoint stays on disk."""
    _ask(of, as_json, kind="stop", name=name)


@query.command("change")
def change_query(
    name: Annotated[str, typer.Argument(help="the query")],
    of: Annotated[
        Path,
        typer.Option(
            "--cluster", "--folder", help="the cluster file, or the folder of a `spillway run`"
        ),
    ],
    sql: Annotated[Path | None, typer.Option(help="a file with its other text")] = None,
    partitions: Annotated[int | None, typer.Option(help="of its state")] = None,
    back: Annotated[bool, typer.Option(help="to the version before")] = False,
    check: Annotated[bool, typer.Option(help="only say what would happen")] = False,
    as_json: AsJson = False,
) -> None:
    """Change a query while it runs: another text, or more partitions, from a window on."""
    if back == (sql is not None or partitions is not None):
        raise SpillwayError("give --sql FILE, --partitions N or both, or --back alone")
    changes: dict[str, Any] = {} if partitions is None else {"partitions": partitions}
    if sql is not None:
        changes["sql"] = text_of(sql)
    if not of.exists():
        raise SpillwayError(
            f"'{of}' is not there: give --cluster FILE, or --folder FOLDER of a running"
            " `spillway run`"
        )
    if of.is_dir():
        change_here(of, name, None if back else changes, only_check=check, as_json=as_json)
    elif check:
        say_change(place_in(of), name, None if back else changes, as_json)
    else:
        kind = "back" if back else "change"
        _ask(of, as_json, kind=kind, name=name, query=changes)


@query.command("list")
def list_queries(of: Of, as_json: AsJson = False) -> None:
    """What runs where."""
    from spillway.hosts.cluster.status import Status, tables

    now = Status(place_in(of)).now()
    if as_json:
        print_json(now["queries"])
    else:
        print_table(tables(now)[1])


def _queries_in(file: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpillwayError(f"{file} cannot be read: {error}") from error
    found = value.get("queries") if isinstance(value, dict) else None
    if not isinstance(found, dict) or not found:
        raise SpillwayError(f"{file} has no queries: write `queries: {{NAME: {{sql: ...}}}}`")
    return found

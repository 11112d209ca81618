"""`spillway instances`: a template's instances, looked at and changed while its flow runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spillway.cli.screen import console, print_json, print_table
from spillway.errors import SpillwayError, shown, unknown_name
from spillway.report import Table

if TYPE_CHECKING:
    from spillway.templates.instance_store import InstanceStore

instances = typer.Typer(
    help="List, add and remove the instances of a template, also while its flow runs.",
    no_args_is_help=True,
)

QueryName = Annotated[str, typer.Argument(help="the query with the template")]
FlowFolder = Annotated[Path, typer.Option(help="the folder of `spillway run`")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON only")]


@instances.command("list")
def list_instances(query: QueryName, folder: FlowFolder, as_json: AsJson = False) -> None:
    """The active instances with their ids."""
    active = _store(folder, query).active()
    if as_json:
        print_json([{"query_id": i.query_id, **i.values} for i in active])
        return
    columns = ("query_id", *(active[0].values if active else ()))
    rows = [(i.query_id, *(str(value) for value in i.values.values())) for i in active]
    print_table(Table(title=f"instances of {query}", columns=columns, rows=rows))


@instances.command()
def add(
    query: QueryName,
    folder: FlowFolder,
    values: Annotated[
        list[str] | None, typer.Argument(help="PARAMETER=VALUE ...: one instance")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="a CSV file: one instance a line")] = None,
    as_json: AsJson = False,
) -> None:
    """Add instances; they see tuples from the next batch on."""
    from spillway.templates.instances import add_instances

    if (values is None) == (csv is None):
        raise SpillwayError("name one instance as PARAMETER=VALUE ..., or many with --csv FILE")
    rows = csv if csv is not None else [_row(values or [])]
    ids = add_instances(_store(folder, query), query, rows)
    if as_json:
        print_json({"added": ids})
    else:
        console.print(f"added {len(ids)}: query_id {_span(ids)}", highlight=False)


@instances.command()
def remove(
    query: QueryName,
    ids: Annotated[list[int], typer.Argument(help="query_id ...")],
    folder: FlowFolder,
    as_json: AsJson = False,
) -> None:
    """Remove instances; the others keep their windows, and the ids are never used again."""
    _store(folder, query).remove(ids)
    if as_json:
        print_json({"removed": ids})
    else:
        console.print(f"removed {len(ids)}", highlight=False)


def _store(folder: Path, query: str) -> "InstanceStore":
    from spillway.templates.instance_store import InstanceStore

    try:
        known = sorted(path.stem for path in (folder / "instances").glob("*.jsonl"))
    except (OSError, ValueError):  # a name that no folder can have
        known = []
    if not known:
        raise SpillwayError(
            f"{shown(str(folder))} holds no templates: name the folder of `spillway run`, by"
            " default .spillway/FLOW"
        )
    if query not in known:
        raise unknown_name("query with a template", query, known)
    return InstanceStore(folder / "instances" / f"{query}.jsonl")


def _row(values: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpillwayError(f"'{text}' is no value: write PARAMETER=VALUE")
        row[name] = value
    return row


def _span(ids: list[int]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"

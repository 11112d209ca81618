"""What is said beforehand of moves and changes of running queries."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.cli.screen import console, print_json
from spillway.cli.set import channel_of
from spillway.errors import SpillwayError

if TYPE_CHECKING:
    from spillway.hosts.cluster.opening import Place

FALLBACK = "it stops there and starts here, with a pause"


def moves_of(place: "Place") -> dict[str, str | None]:
    """Of each query, why it cannot move while it runs; None: it can."""
    from spillway.hosts.spark.driver.cuts import cut_of

    found: dict[str, str | None] = {}
    for name, query in place.flow.queries.items():
        try:
            cut_of(name, query, place.flow)
            found[name] = None
        except SpillwayError as error:
            found[name] = str(error)
    return found


def say_change(place: "Place", name: str, changes: Mapping[str, Any] | None, as_json: bool) -> None:
    """`changes`: None for the version before."""
    from spillway.hosts.cluster.changing import change_of
    from spillway.hosts.cluster.status import Status

    flow = place.flow.model_dump(by_alias=True, exclude={"queries", "cluster"})
    given = Status(place).assignment(name)
    wanted = given.before if changes is None else changes
    if wanted is None:
        raise SpillwayError(f"query '{name}' was never changed: there is no version before")
    _say(name, change_of(name, given, wanted, flow).said(), as_json)


def change_here(
    folder: Path, name: str, changes: Mapping[str, Any] | None, *, only_check: bool, as_json: bool
) -> None:
    """Of the flow that runs in a folder; `changes`: None for the version before."""
    from spillway.hosts.spark.driver.channel import request_query_change

    lines = request_query_change(channel_of(folder), name, changes, only_check=only_check)
    if not only_check and not as_json:
        console.print(f"query '{name}' changes while it runs", highlight=False)
    _say(name, lines, as_json)


def _say(name: str, lines: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"query": name, "would": lines})
        return
    for line in lines:
        console.print(line, highlight=False)


def text_of(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{file} cannot be read: {error}") from error

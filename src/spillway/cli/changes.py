"""What is said beforehand of moves and changes of running queries."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.cli.screen import console, print_json
from spillway.errors import SpillwayError

if TYPE_CHECKING:
    from spillway.hosts.cluster.opening import Place


def moves_of(place: "Place") -> dict[str, str | None]:
    """Of each query, why it cannot move while it runs; None: it can."""
    from spillway.hosts.spark.driver.own_windows import windowed

    found: dict[str, str | None] = {}
    for name, query in place.flow.queries.items():
        try:
            windowed(name, query, place.flow)
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
    lines = change_of(name, given, wanted, flow).said()
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

"""`${NAME}` and `${file:PATH}` in the options of a flow file: what a file in a repository must not
hold, passwords first, comes from the environment or from a file beside it.

They stand for their values in `options` of streams, in sinks, in `spark.config` and in
`cluster.control`, and nowhere else. `$${` is the text `${`.
"""

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.redaction import is_secret, remember_value

Place = tuple[str, ...]

_REFERENCE = re.compile(r"\$(\$\{|\{([^{}]*)\})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_MOST_BYTES = 64 << 10


def tables(value: Mapping[str, Any]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Where references may stand, by place."""
    places: list[Place] = [("spark", "config"), ("cluster", "control")]
    for part, key in (("streams", "options"), ("queries", "sink")):
        names = value.get(part)
        places += [(part, name, key) for name in names] if isinstance(names, dict) else []
    for place in places:
        table = _at(value, *place)
        if isinstance(table, dict):
            yield place, table


def references(value: Mapping[str, Any]) -> Iterator[tuple[Place, dict[str, Any], str]]:
    """Each place with a reference in it, its table, and its key there."""
    for place, table in tables(value):
        for key, given in list(table.items()):
            if isinstance(given, str) and "${" in given:
                yield (*place, key), table, key


def filled(value: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    """The same with values in the place of references; files are named as seen from `beside`."""
    made: dict[str, Any] = copy.deepcopy(dict(value))
    for place, table, key in references(made):
        try:
            table[key] = looked_up(beside, str(key), table[key])
        except SpillwayError as error:
            raise SpillwayError(f"{'.'.join(map(str, place))} {error}") from None
    return made


def looked_up(beside: Path, key: str, text: str) -> str:
    """Of a key that is a secret's, and of a file, no message will ever show the value."""

    def one(found: re.Match[str]) -> str:
        if found[2] is None:
            return "${"
        value = _value(beside, found[2])
        if is_secret(key) or found[2].startswith("file:"):
            remember_value(value)
        return value

    replace: Callable[[re.Match[str]], str] = one
    return _REFERENCE.sub(replace, text)


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _value(beside: Path, name: str) -> str:
    if name.startswith("file:"):
        return _first_line(beside / name.removeprefix("file:"))
    if not _NAME.fullmatch(name):
        raise SpillwayError(
            f"refers to '${{{shown(name)}}}': write ${{NAME}} for a variable of the environment,"
            " ${file:PATH} for the first line of a file, $${ for the text ${"
        )
    if name not in os.environ:
        raise SpillwayError(f"refers to ${{{name}}}, which the environment has not: set it")
    return os.environ[name]


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(_MOST_BYTES).decode().rstrip("\r\n")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise SpillwayError(f"refers to the file {path}, which cannot be read: {said}") from None

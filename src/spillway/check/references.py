"""`${NAME}` and `${file:PATH}` in the options of a flow file: what a file in a repository must not
hold, passwords first, comes from the environment or from a file beside it.

They stand for their values in `options` of streams, in sinks and in `spark.config`, and nowhere
else. `$${` is the text `${`.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spillway.check.document import Document, Location
from spillway.errors import SpillwayError, shown
from spillway.redaction import is_secret, remember_value

_REFERENCE = re.compile(r"\$(\$\{|\{([^{}]*)\})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_MOST_BYTES = 64 << 10


def resolve(document: Document) -> None:
    """Put the values in; raises with the places of those that are not there."""
    problems: list[str] = []
    for location, table, key in _places(document.value):
        try:
            table[key] = _value(document.path.parent, str(key), table[key])
        except SpillwayError as error:
            name = ".".join(shown(str(step)) for step in location)
            problems.append(f"{document.where(location)}: {name} {error}")
    if problems:
        raise SpillwayError(*problems)


def _places(value: dict[str, Any]) -> Iterator[tuple[Location, dict[str, Any], str]]:
    tables: list[tuple[Location, Any]] = [(("spark", "config"), _at(value, "spark", "config"))]
    for part, key in (("streams", "options"), ("queries", "sink")):
        names = value.get(part)
        for name in names if isinstance(names, dict) else ():
            tables.append(((part, name, key), _at(value, part, name, key)))
    for location, table in tables:
        for key, given in list(table.items()) if isinstance(table, dict) else ():
            if isinstance(given, str) and "${" in given:
                yield (*location, key), table, key


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _value(folder: Path, key: str, text: str) -> str:
    """Of a key that is a secret's, and of a file, no message will ever show the value."""

    def one(found: re.Match[str]) -> str:
        if found[2] is None:
            return "${"
        value = _looked_up(folder, found[2])
        if is_secret(key) or found[2].startswith("file:"):
            remember_value(value)
        return value

    replace: Callable[[re.Match[str]], str] = one
    return _REFERENCE.sub(replace, text)


def _looked_up(folder: Path, name: str) -> str:
    if name.startswith("file:"):
        return _first_line(folder / name.removeprefix("file:"))
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

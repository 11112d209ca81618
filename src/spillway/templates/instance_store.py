"""The instances of a template on disk: which exist, since which version, with which values.

A store is one append-only file of JSON lines. Its first line fixes what the running plan depends
on; every later line is a change with a version of its own, and ids are never reused. The gate
stamps each row with the version at which its batch was planned, and the plan joins a row only with
instances that were there at that version; so a replayed batch sees the same instances.

Planners and workers import this module: it stays light.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.lines import LineWriter, line_of, line_writer, whole_lines

FOREVER = 2**62

Values = Mapping[str, Any]
Identity = tuple[int, int, int]
Shape = Mapping[str, str]  # literal parameter to its value


@dataclass(frozen=True, kw_only=True)
class Instance:
    query_id: int
    values: Values
    added: int
    removed: int = FOREVER


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What every instance of a running plan has in common."""

    template: str
    types: Mapping[str, str]  # value parameter to its Spark SQL type
    shapes: tuple[Shape, ...]  # the literal values that the plan has a branch for


class InstanceStore:
    """Adds and removes instances; what was written can be read by any process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: tuple[Identity, list[dict[str, Any]]] | None = None

    def identity(self) -> Identity:
        """Changes with every change of the store."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def begin(self, frame: Frame) -> None:
        """The first line. A store that exists keeps its own."""
        if self.frame() is not None:
            return
        line = {"template": frame.template, "types": dict(frame.types)}
        shapes = [dict(shape) for shape in frame.shapes]
        with line_writer(self.path) as file:
            if self.frame() is None:  # still, now that nobody else writes
                _write(file, {"version": 0, **line, "shapes": shapes})

    def frame(self) -> Frame | None:
        first = next(iter(self._lines()), None)
        if first is None or "template" not in first:
            return None
        return Frame(
            template=first["template"], types=first["types"], shapes=tuple(first["shapes"])
        )

    def instances(self) -> list[Instance]:
        """All instances that ever were, by id."""
        found: dict[int, Instance] = {}
        for change in self._lines():
            version = change["version"]
            for query_id, values in change.get("add", {}).items():
                number = int(query_id)
                found[number] = Instance(query_id=number, values=values, added=version)
            for query_id in change.get("remove", []):
                found[query_id] = replace(found[query_id], removed=version)
        return list(found.values())

    def active(self) -> list[Instance]:
        return [instance for instance in self.instances() if instance.removed == FOREVER]

    def version(self) -> int:
        """The newest version; 0 before the first change."""
        return max((change["version"] for change in self._lines()), default=0)

    def add(self, rows: Sequence[Values]) -> list[int]:
        """New instances, active from the next batch on; their ids."""
        return self._change(add=rows)

    def remove(self, query_ids: Iterable[int]) -> None:
        """End instances with the next batch; ids that are not active are refused."""
        wanted = list(query_ids)
        active = {instance.query_id for instance in self.active()}
        for query_id in wanted:
            if query_id not in active:
                raise SpillwayError(f"instance {query_id} is not active: it cannot be removed")
        self._change(remove=wanted)

    def declare(self, rows: Sequence[Values]) -> None:
        """What the flow now lists, applied as the difference to what it listed before.

        Instances that were added or removed by hand stay as they are.
        """
        before: list[dict[str, Any]] = next(
            (c["declare"] for c in reversed(self._lines()) if "declare" in c), []
        )
        old, new = Counter(map(_text, before)), Counter(map(_text, rows))
        gone, active = old - new, self.active()
        ended = []
        for instance in active:
            if gone[_text(instance.values)] > 0:
                gone[_text(instance.values)] -= 1
                ended.append(instance.query_id)
        missing = new - old
        fresh = []
        for row in rows:  # ids follow the order of the list
            if missing[_text(row)] > 0:
                missing[_text(row)] -= 1
                fresh.append(row)
        if old != new:
            self._change(add=fresh, remove=ended, declare=[dict(row) for row in rows])

    def _change(
        self, *, add: Sequence[Values] = (), remove: Sequence[int] = (), **more: Any
    ) -> list[int]:
        if not (add or remove or more):
            return []
        with line_writer(self.path) as file:
            first = max((instance.query_id for instance in self.instances()), default=0) + 1
            ids = list(range(first, first + len(add)))
            rows = {str(i): dict(row) for i, row in zip(ids, add, strict=True)}
            change = {"add": rows, "remove": list(remove), **more}
            _write(file, {"version": self.version() + 1, **{k: v for k, v in change.items() if v}})
        return ids

    def _lines(self) -> list[dict[str, Any]]:
        identity = self.identity()  # before the text: at worst the text is newer and read twice
        if self._read is None or self._read[0] != identity:
            self._read = identity, self._read_lines()
        return self._read[1]

    def _read_lines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        number, ids = 0, set[int]()
        try:
            for number, line in enumerate(whole_lines(self.path), start=1):  # noqa: B007
                change = json.loads(line)
                _require_change(change, found[-1]["version"] if found else -1, ids)
                found.append(change)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SpillwayError(f"{self.path} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            said = f"{type(error).__name__}: {shown(str(error))}"
            raise SpillwayError(
                f"{self.path}:{number} is damaged ({said}): restore the file, or run in a new"
                " --folder"
            ) from None
        return found


def _require_change(change: dict[str, Any], before: int, ids: set[int]) -> None:
    """Raise where a line does not say what `_write` writes; `ids` are those before, and grow."""
    if type(change["version"]) is not int or not before < change["version"] < FOREVER:
        raise ValueError(f"version {shown(change['version'])} comes after {before}")
    if "template" in change:
        frame = [change["template"], *change["types"].keys(), *change["types"].values()]
        shapes = [text for shape in change["shapes"] for item in shape.items() for text in item]
        if not all(isinstance(text, str) for text in (*frame, *shapes)):
            raise TypeError("template, types and shapes are texts")
    for text, values in change.get("add", {}).items():
        if not (text.isascii() and text.isdecimal() and 0 < int(text) < FOREVER):
            raise ValueError(f"'{shown(text)}' is no number of an instance")
        if int(text) in ids:
            raise ValueError(f"instance {text} is there twice")
        ids.add(int(text))
        _require_values(values)
    for query_id in change.get("remove", []):
        if type(query_id) is not int or query_id not in ids:
            raise ValueError(f"instance {shown(query_id)} is not there")
    for values in change.get("declare", []):
        _require_values(values)


def _require_values(values: Any) -> None:
    """By name: texts, numbers that Spark can hold, true, false or nothing."""
    for name, value in values.items():
        plain = value is None or isinstance(value, str | bool)
        if not isinstance(name, str) or not (plain or is_number(value)):
            raise TypeError(f"'{shown(name)}' is {shown(value)}")


def is_number(value: object) -> bool:
    """A whole number of 64 bits, or a finite one."""
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 63
    return type(value) is float and isfinite(value)


def _write(file: LineWriter, change: Mapping[str, Any]) -> None:
    file.append(line_of(change), durable=True)  # no offset may name what a crash can undo


def _text(values: Values) -> str:
    return json.dumps(dict(values), sort_keys=True)

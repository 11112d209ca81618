"""The instances of a template on disk: which exist, since which version, with which values.

A store is one append-only file of JSON lines. Its first line fixes what the running plan depends
on; every later line is a change with a version of its own, and ids are never reused. The gate
stamps each row with the version at which its batch was planned, and the plan joins a row only with
instances that were there at that version; so a replayed batch sees the same instances.

Planners and workers import this module: it stays light.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from spillway.errors import SpillwayError

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
        if self.frame() is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            line = {"template": frame.template, "types": dict(frame.types)}
            with self._alone() as file:
                _write(file, {"version": 0, **line, "shapes": [dict(s) for s in frame.shapes]})

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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        with self._alone() as file:
            first = max((instance.query_id for instance in self.instances()), default=0) + 1
            ids = list(range(first, first + len(add)))
            rows = {str(i): dict(row) for i, row in zip(ids, add, strict=True)}
            change = {"add": rows, "remove": list(remove), **more}
            _write(file, {"version": self.version() + 1, **{k: v for k, v in change.items() if v}})
        return ids

    @contextmanager
    def _alone(self) -> Iterator[BinaryIO]:
        """The file, open at the end of its last whole line, while nobody else writes."""
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(file.read().rfind(b"\n") + 1)
            file.truncate()  # what a killed writer left
            yield file

    def _lines(self) -> list[dict[str, Any]]:
        identity = self.identity()  # before the text: at worst the text is newer and read twice
        if self._read is None or self._read[0] != identity:
            text = self.path.read_text() if self.path.exists() else ""
            whole = text[: text.rfind("\n") + 1]  # a line without its end is still being written
            self._read = identity, [json.loads(line) for line in whole.splitlines()]
        return self._read[1]


def _write(file: BinaryIO, line: Mapping[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())  # no offset may name a version that a crash can undo


def _text(values: Values) -> str:
    return json.dumps(dict(values), sort_keys=True)

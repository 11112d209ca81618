"""The instances of a template: which exist, since which version, with which values.

A store is one append-only file of JSON lines: every change has a version, ids are never reused.
The gate stamps each row with the version at which its batch was planned, and the plan joins a row
only with instances that were there at that version; so a replayed batch sees the same instances.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.model import parse_duration_s
from spillway.queries.templates import Template

FOREVER = 2**62
MOST_INSTANCES = 100_000

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Instance:
    query_id: int
    values: Values
    added: int
    removed: int = FOREVER


class InstanceStore:
    """Adds and removes instances; what was written can be read by any process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def instances(self) -> list[Instance]:
        """All instances that ever were, by id."""
        found: dict[int, Instance] = {}
        for change in self._changes():
            version = change["version"]
            for query_id, values in change.get("add", {}).items():
                found[int(query_id)] = Instance(
                    query_id=int(query_id), values=values, added=version
                )
            for query_id in change.get("remove", []):
                old = found[query_id]
                found[query_id] = Instance(
                    query_id=query_id, values=old.values, added=old.added, removed=version
                )
        return list(found.values())

    def active(self) -> list[Instance]:
        return [instance for instance in self.instances() if instance.removed == FOREVER]

    def version(self) -> int:
        """The newest version; 0 before the first change."""
        return max((change["version"] for change in self._changes()), default=0)

    def add(self, rows: Sequence[Values]) -> list[int]:
        """New instances, active from the next batch on; their ids."""
        known = self.instances()
        first = max((instance.query_id for instance in known), default=0) + 1
        ids = list(range(first, first + len(rows)))
        if ids:
            rows_by_id = {str(i): dict(row) for i, row in zip(ids, rows, strict=True)}
            self._append({"add": rows_by_id})
        return ids

    def remove(self, query_ids: Iterable[int]) -> None:
        """End instances with the next batch; ids that are not active are refused."""
        wanted = list(query_ids)
        active = {instance.query_id for instance in self.active()}
        for query_id in wanted:
            if query_id not in active:
                raise SpillwayError(f"instance {query_id} is not active: it cannot be removed")
        if wanted:
            self._append({"remove": wanted})

    def _append(self, change: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"version": self.version() + 1, **change}) + "\n"
        with self._path.open("a") as file:
            file.write(line)

    def _changes(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        text = self._path.read_text()
        whole = text[: text.rfind("\n") + 1]  # a line without its end is still being written
        return [json.loads(line) for line in whole.splitlines()]


def load_instances(template: Template, rows: Sequence[Values] | Path) -> list[dict[str, Any]]:
    """The values of every instance, checked against the template's parameters."""
    name = template.name
    if isinstance(rows, Path):
        rows = _from_csv(name, rows)
    if not rows:
        raise SpillwayError(f"queries.{name}.instances is empty: a template needs at least one")
    if len(rows) > MOST_INSTANCES:
        raise SpillwayError(
            f"queries.{name}.instances has {len(rows)} rows: at most {MOST_INSTANCES} are allowed"
        )
    for number, row in enumerate(rows):
        _check(template, number, row)
    return [dict(row) for row in rows]


def shapes_of(template: Template, instances: Iterable[Instance]) -> list[dict[str, str]]:
    """The distinct literal values, in a fixed order: a shape's number is its place."""
    seen = {
        tuple(str(instance.values[p]) for p in template.literal_parameters)
        for instance in instances
    }
    return [dict(zip(template.literal_parameters, shape, strict=True)) for shape in sorted(seen)]


def _check(template: Template, number: int, row: Values) -> None:
    where = f"queries.{template.name}.instances[{number}]"
    for parameter in template.parameters:
        if parameter not in row:
            raise SpillwayError(f"{where}.{parameter} is missing: the template uses :{parameter}")
    for key in row:
        if key not in template.parameters:
            known = ", ".join(template.parameters)
            raise SpillwayError(f"{where}.{key} is no parameter of the template: known are {known}")
    for parameter in template.literal_parameters:
        parse_duration_s(_short(str(row[parameter])), f"{where}.{parameter}")


def _short(interval: str) -> str:
    """'10 seconds' as '10s': Spark's intervals and ours name the same units."""
    number, _, unit = interval.strip().partition(" ")
    units = {"millisecond": "ms", "second": "s", "minute": "m", "hour": "h"}
    return f"{number}{units.get(unit.rstrip('s').lower(), unit)}"


def _from_csv(name: str, path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(newline="") as file:
            return [{k: _typed(v) for k, v in row.items()} for row in csv.DictReader(file)]
    except OSError as error:
        raise SpillwayError(f"queries.{name}.instances: {path} cannot be read: {error}") from error


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

"""The instances of a template, checked: their values, their types, and the shapes of the plan."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.flow.flow import Query
from spillway.model import parse_duration_s
from spillway.templates.instance_store import Frame, InstanceStore, Shape, Values, is_number
from spillway.templates.templates import Template

MOST_INSTANCES = 100_000


@dataclass(frozen=True, kw_only=True)
class Instantiated:
    """A template with the values that the flow gives."""

    template: Template
    rows: list[dict[str, Any]]


def template_of(name: str, query: Query) -> Instantiated:
    """A query's template and its instances, both checked."""
    template = Template.parse(name, query.text)
    given = query.instances
    rows = load_instances(template, Path(given) if isinstance(given, str) else given or [])
    return Instantiated(template=template, rows=rows)


def open_store(path: Path, template: Template, rows: Sequence[Values]) -> InstanceStore:
    """The store of a template's instances; the first start fixes types and shapes."""
    store = InstanceStore(path)
    store.begin(
        Frame(
            template=template.sql,
            types=types_of(template, rows),
            shapes=tuple(shapes_of(template, rows)),
        )
    )
    frame = store.frame()
    assert frame is not None
    if frame.template != template.sql:
        raise SpillwayError(
            f"queries.{template.name}.template has changed since {path} was made: its windows"
            " cannot go on; give the new template a name of its own, or run it in a new --folder"
        )
    _require_fit(template, frame, rows)
    store.declare(rows)
    return store


def add_instances(store: InstanceStore, name: str, rows: Sequence[Values] | Path) -> list[int]:
    """New instances of a template that may be running; their ids. Texts become its types."""
    frame = store.frame()
    if frame is None:
        raise SpillwayError(f"{store.path} holds no template: name a query with a template")
    template = Template.parse(name, frame.template)
    if set(frame.types) != set(template.value_parameters):
        raise SpillwayError(f"{store.path}:1 is damaged: it has types of other parameters")
    given, places = _from_csv(name, rows) if isinstance(rows, Path) else (rows, None)
    types = frame.types
    typed = [{k: _as_type(types.get(k, "STRING"), v) for k, v in row.items()} for row in given]
    checked = load_instances(template, typed, places)
    active = len(store.active())
    if active + len(checked) > MOST_INSTANCES:
        raise SpillwayError(
            f"queries.{name} has {active} instances: {len(checked)} more would be above the"
            f" {MOST_INSTANCES} that are allowed"
        )
    _require_fit(template, frame, checked)
    return store.add(checked)


def load_instances(
    template: Template, rows: Sequence[Values] | Path, places: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The values of every instance, checked against the template's parameters. `places` are where
    they stand, if not in the flow file."""
    name = template.name
    if isinstance(rows, Path):
        texts, places = _from_csv(name, rows)
        rows = _typed_by_column(texts)
    if not rows:
        raise SpillwayError(f"queries.{name}.instances is empty: a template needs at least one")
    if len(rows) > MOST_INSTANCES:
        raise SpillwayError(
            f"queries.{name}.instances has {len(rows)} rows: at most {MOST_INSTANCES} are allowed"
        )
    for number, row in enumerate(rows):
        place = f"queries.{name}.instances[{number}]" if places is None else places[number]
        _check(template, place, row)
    return [dict(row) for row in rows]


def shapes_of(template: Template, rows: Iterable[Values]) -> list[dict[str, str]]:
    """The distinct literal values, in a fixed order: a shape's number is its place."""
    shapes = {tuple(str(row[p]) for p in template.literal_parameters) for row in rows}
    return [dict(zip(template.literal_parameters, shape, strict=True)) for shape in sorted(shapes)]


def types_of(template: Template, rows: Iterable[Values]) -> dict[str, str]:
    """The Spark SQL type of every value parameter: the narrowest that holds all its values."""
    found: dict[str, set[type]] = {p: set() for p in template.value_parameters}
    for row in rows:
        for parameter, kinds in found.items():
            kinds.add(type(row[parameter]))
    return {parameter: _spark_type(kinds - {type(None)}) for parameter, kinds in found.items()}


def _spark_type(kinds: set[type]) -> str:
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {int, float} else "STRING"


def _require_fit(template: Template, frame: Frame, rows: Sequence[Values]) -> None:
    """A running plan has its types and its windows; instances that need others are refused."""
    where = f"queries.{template.name}.instances"
    for parameter, kind in types_of(template, rows).items():
        known = frame.types[parameter]
        values = [row[parameter] for row in rows]
        if (
            kind != known
            and not (known == "DOUBLE" and kind == "BIGINT")
            and any(value is not None for value in values)
        ):
            raise SpillwayError(
                f"{where}: {parameter} is {kind} here and {known} in the running plan, for example"
                f" {shown(values[0])}: give it as {known}, or run it in a new --folder"
            )
    for shape in shapes_of(template, rows):
        if shape not in frame.shapes:
            raise SpillwayError(
                f"{where}: the running plan has no window of {_named(shape)}: it has"
                f" {'; '.join(map(_named, frame.shapes))}; a new window size needs a query of its"
                " own, or a new --folder"
            )


def _named(shape: Shape) -> str:
    return ", ".join(f"{parameter} {value!r}" for parameter, value in shape.items())


def _check(template: Template, where: str, row: Values) -> None:
    for parameter in template.parameters:
        if parameter not in row:
            raise SpillwayError(f"{where}.{parameter} is missing: the template uses :{parameter}")
    for key, value in row.items():
        if key not in template.parameters:
            known = ", ".join(template.parameters)
            raise SpillwayError(
                f"{where}.{shown(key)} is no parameter of the template: known are {known}"
            )
        if not (value is None or isinstance(value, str | bool) or is_number(value)):
            raise SpillwayError(
                f"{where}.{key} is {shown(value)}: it must be a text, true, false, nothing or a"
                " number that 64 bits hold"
            )
    for parameter in template.literal_parameters:
        parse_duration_s(_short(str(row[parameter])), f"{where}.{parameter}")


def _short(interval: str) -> str:
    """'10 seconds' as '10s': Spark's intervals and ours name the same units."""
    number, _, unit = interval.strip().partition(" ")
    units = {"millisecond": "ms", "second": "s", "minute": "m", "hour": "h"}
    return f"{number}{units.get(unit.rstrip('s').lower(), unit)}"


def _from_csv(name: str, path: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The rows, and where each of them stands."""
    where = f"queries.{name}.instances: {path}"
    rows: list[dict[str, str]] = []
    places: list[str] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            names = next(reader, [])
            if len(set(names)) < len(names):
                raise SpillwayError(f"{where}:1 names a column twice: {shown(', '.join(names))}")
            for values in reader:
                if values and len(values) != len(names):
                    raise SpillwayError(
                        f"{where}:{reader.line_num} has {len(values)} values for {len(names)}"
                        " columns"
                    )
                if values:
                    rows.append(dict(zip(names, values, strict=True)))
                    places.append(f"{where}:{reader.line_num}")
                if len(rows) > MOST_INSTANCES:
                    raise SpillwayError(
                        f"{where}:{reader.line_num} is one too many: at most {MOST_INSTANCES}"
                        " instances are allowed"
                    )
    except OSError as error:
        raise SpillwayError(f"{where} cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise SpillwayError(f"{where} is no CSV file: {shown(str(error))}") from None
    return rows, places


def _typed_by_column(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """A column is of numbers when all its values are: '007' beside 'x' stays a text."""
    columns = {name: _numbers([row[name] for row in rows]) for name in rows[0]} if rows else {}
    return [{name: columns[name][place] for name in columns} for place in range(len(rows))]


def _numbers(texts: list[str]) -> Sequence[Any]:
    for kind in (int, float):
        try:
            found = [kind(text) for text in texts]
        except (TypeError, ValueError):
            continue
        if all(map(is_number, found)):  # no infinity, nothing that a column of 64 bits cannot hold
            return found
    return texts


def _as_type(kind: str, value: Any) -> Any:
    """A text as the running plan's type; a text that is none is left for the check to refuse."""
    if not isinstance(value, str) or kind == "STRING":
        return value
    try:
        if kind == "BOOLEAN":
            return {"true": True, "false": False}.get(value.lower(), value)
        number = int(value) if kind == "BIGINT" else float(value)
    except ValueError:
        return value
    return number if is_number(number) else value

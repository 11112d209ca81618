"""Reading a flow file: every error names file, line, key, value and what is allowed."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import Flow, Part, Query, Stream
from spillway.logs.stream_options import require_valid
from spillway.sinks import catalog as sinks
from spillway.templates.instances import template_of

Location = tuple[str | int, ...]


def load_flow(path: Path) -> Flow:
    """The flow in a YAML file, checked before Spark starts."""
    root = _parse(path)
    lines = dict(_lines(root, ()))
    value = yaml.SafeLoader("").construct_document(root)
    _resolve_paths(path.parent, value)
    try:
        flow = Flow.model_validate(value)
    except ValidationError as error:
        raise SpillwayError("\n".join(_describe(path, lines, value, error))) from error
    _check_names(path, lines, flow)
    return flow


def _parse(path: Path) -> yaml.Node:
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except FileNotFoundError as error:
        raise SpillwayError(f"there is no flow file at {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpillwayError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise SpillwayError(f"{where} is not YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(root, yaml.MappingNode):
        raise SpillwayError(f"{path} must be a mapping with the keys streams, classes and queries")
    return root


def _resolve_paths(folder: Path, value: Any) -> None:
    """A CSV file is named as seen from the flow file."""
    queries = value.get("queries")
    for query in queries.values() if isinstance(queries, dict) else ():
        if isinstance(query, dict) and isinstance(query.get("instances"), str):
            query["instances"] = str((folder / query["instances"]).absolute())


def _lines(node: yaml.Node, location: Location) -> Iterator[tuple[Location, int]]:
    """The line of every key and item, by its place in the document."""
    yield location, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*location, key.value)
            yield from _lines(value, inner)
            yield inner, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*location, index))


def _describe(
    path: Path, lines: dict[Location, int], value: Any, error: ValidationError
) -> Iterator[str]:
    for problem in error.errors():
        location = _document_location(value, problem["loc"])
        shown = f"{_where(path, lines, location)}: {'.'.join(map(str, location))}"
        if problem["type"] == "extra_forbidden":
            yield f"{shown} is not a known key{_nearest_key(str(location[-1]))}"
        elif problem["type"] == "missing":
            yield f"{shown} is missing"
        elif problem["type"] in ("literal_error", "union_tag_invalid"):
            yield f"{shown}: {_not_a_choice(problem)}"
        else:
            message = problem["msg"].removeprefix("Value error, ")
            given = problem["input"]
            is_part = isinstance(given, dict | list)
            yield f"{shown}: {message}" if is_part else f"{shown} is {given!r}: {message}"


def _document_location(value: Any, location: Location) -> Location:
    """A validation error's place without the type tags that pydantic puts in between."""
    kept: list[str | int] = []
    for step in location:
        inside = step in value if isinstance(value, dict) else _is_index(value, step)
        if inside:
            value = value[step]
        if inside or (step == location[-1] and kept[-1:] != [step]):
            kept.append(step)
    return tuple(kept)


def _is_index(value: Any, step: str | int) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _not_a_choice(problem: ErrorDetails) -> SpillwayError:
    """One name out of a list was asked for, and this is none of them."""
    context = problem["ctx"]
    given = str(context.get("tag", problem["input"]))
    known = re.findall(r"'([^']*)'", context.get("expected_tags", context.get("expected", "")))
    return unknown_name("value", given, known)


def _nearest_key(key: str) -> str:
    parts = Part.__subclasses__()
    known = {f.alias or name for part in parts for name, f in part.model_fields.items()}
    near = get_close_matches(key, known, n=1)
    return f": did you mean '{near[0]}'?" if near else ""


def _where(path: Path, lines: dict[Location, int], location: Location) -> str:
    while location and location not in lines:
        location = location[:-1]
    return f"{path}:{lines.get(location, 1)}"


def _check_names(path: Path, lines: dict[Location, int], flow: Flow) -> None:
    for location, problem in problems_of(flow):
        raise SpillwayError(f"{_where(path, lines, location)}: {problem}")


def problems_of(flow: Flow) -> Iterator[tuple[Location, str]]:
    """What no part can see by itself: names that must exist elsewhere, templates and instances."""
    for name, query in flow.queries.items():
        if query.template is not None:
            yield from _template_problems(name, query)
        yield from _sink_problems(name, query)
        if query.class_name not in flow.classes:
            problem = unknown_name("class", query.class_name, flow.classes)
            yield ("queries", name, "class"), f"queries.{name}.class: {problem}"
    for name, stream in flow.streams.items():
        yield from _option_problems(name, stream)


# Gate options that a flow sets itself, and where a user says them.
_SAID_ELSEWHERE: Mapping[str, str] = {
    "delay": "classes.NAME.delay",
    "manager": "classes.NAME.manager",
    "period": "control.period",
    "policy": "streams.NAME.policy",
    "min_keep": "streams.NAME.min_keep",
    "dry_run": "queries.NAME.dry_run",
    "weight": "queries.NAME.estimate",
    "heartbeat": "streams.NAME.event_time",
    "schema": "streams.NAME.columns",
    **{name: f"streams.NAME.{name}" for name in ("shedder", "key", "utility", "window", "epoch")},
}
_RUN_SETS = ("checkpoint", "ledger", "joint", "class", "gate", "trigger")


def _option_problems(name: str, stream: Stream) -> Iterator[tuple[Location, str]]:
    if stream.source is None:
        return
    place: Location = ("streams", name, "options")
    for option in stream.options:
        asked = option.lower().partition(".")[0]
        if asked in _SAID_ELSEWHERE:
            yield place, f"streams.{name}.options.{option}: say it as {_SAID_ELSEWHERE[asked]}"
        elif asked in _RUN_SETS:
            yield place, f"streams.{name}.options.{option}: `spillway run` sets it; leave it out"
    try:
        require_valid(stream.source, stream.options)
    except SpillwayError as error:
        yield ("streams", name, "options"), f"streams.{name}.options: {error}"


def _sink_problems(name: str, query: Query) -> Iterator[tuple[Location, str]]:
    try:
        sinks.given_to(name, query.sink)
    except SpillwayError as error:
        yield ("queries", name, "sink"), str(error)


def _template_problems(name: str, query: Query) -> Iterator[tuple[Location, str]]:
    try:
        template_of(name, query)
    except SpillwayError as error:
        key = "instances" if f"queries.{name}.instances" in str(error) else "template"
        yield ("queries", name, key), str(error)

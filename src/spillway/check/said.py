"""What pydantic finds wrong with a part of a flow, in our words: one line a problem."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from spillway.check.document import Location
from spillway.errors import nearest_of, quoted, shown, unknown_name
from spillway.flow.values import Part

_MOST = 50  # problems that are told

_NAME = "a name: letters, digits and _, no digit first, at most 64 characters"
_SCALAR = "a text, a number, or true or false"
_ALLOWED = {
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": _NAME,
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number that is not so long",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is finite",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "none_required": "empty",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least {}"),
    "greater_than": ("gt", "above {}"),
    "less_than_equal": ("le", "at most {}"),
    "less_than": ("lt", "below {}"),
}


def problems_in(
    value: Any, error: ValidationError, where: str = ""
) -> Iterator[tuple[Location, str]]:
    """(place, what is wrong there); alternatives that all failed are one problem. `where`: what
    part of a flow the value is."""
    found: dict[Location, list[ErrorDetails]] = {}
    for problem in error.errors(include_url=False):
        missing = problem["type"] == "missing"
        found.setdefault(_location(value, problem["loc"], missing), []).append(problem)
    inner = {location[:end] for location in found for end in range(len(location))}
    for number, (location, problems) in enumerate(found.items()):
        if location in inner and problems[0]["type"] == "string_type":
            continue  # it might have been a text; as what it is, it is wrong further inside
        if number == _MOST:
            yield (), f"{len(found) - _MOST} more problems: correct these first"
            return
        steps = (*filter(None, [where]), *(shown(str(step)) for step in location))
        name = ".".join(steps) or "the file"
        yield location, _sentence(name, location, problems)


def _sentence(name: str, location: Location, problems: list[ErrorDetails]) -> str:
    problem = problems[0]
    kind, given = problem["type"], problem.get("input")
    if kind == "extra_forbidden":
        return f"{name} is not a known key{_nearest_key(str(location[-1]))}"
    if kind == "missing":
        return f"{name} is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        return f"{name}: {_not_a_choice(problem)}"
    if kind == "value_error":
        said = problem["msg"].removeprefix("Value error, ")
        if isinstance(given, dict | list):
            return f"{name}: {said}"
        _, repeated, rest = said.partition(f" is {quoted(given)}: ")
        return _is(name, given, rest if repeated else said)
    return _is(name, given, f"it must be {_allowed(problems)}")


def _is(name: str, given: object, said: str) -> str:
    if given is None:
        return f"{name} is empty: {said}"
    if isinstance(given, dict | list):
        return f"{name} is a {'mapping' if isinstance(given, dict) else 'list'}: {said}"
    return f"{name} is {quoted(given)}: {said}"


def _allowed(problems: list[ErrorDetails]) -> str:
    problem = problems[0]
    kind, context = problem["type"], problem.get("ctx", {})
    kinds = {one["type"] for one in problems}
    if "string_pattern_mismatch" in kinds or (kind == "string_too_long" and len(problems) == 1):
        return _NAME if context.get("max_length", 64) == 64 else _shorter(context)
    if len(problems) > 1 and kinds & {"int_type", "float_type"}:
        return _SCALAR
    if len(problems) > 1:
        return " or ".join(dict.fromkeys(_ALLOWED.get(one, "something else") for one in kinds))
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return words.format(context[key])
    if kind in ("too_short", "too_long"):
        few = kind == "too_short"
        least = context["min_length" if few else "max_length"]
        return f"a mapping of at {'least' if few else 'most'} {least} entries"
    return _ALLOWED.get(kind, "something else")


def _shorter(context: dict[str, Any]) -> str:
    return f"a text of at most {context['max_length']} characters"


def _location(value: Any, location: Location, missing: bool) -> Location:
    """A validation error's place without the type tags that pydantic puts in between."""
    kept: list[str | int] = []
    for step in location:
        inside = step in value if isinstance(value, dict) else _is_index(value, step)
        if inside:
            value = value[step]
        if inside:
            kept.append(step)
    return (*kept, location[-1]) if missing else tuple(kept)


def _is_index(value: Any, step: str | int) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _not_a_choice(problem: ErrorDetails) -> str:
    """One name out of a list was asked for, and this is none of them."""
    context = problem["ctx"]
    given = context.get("tag", problem["input"])
    known = re.findall(r"'([^']*)'", context.get("expected_tags", context.get("expected", "")))
    return str(unknown_name("value", shown(given), known))


def _nearest_key(key: str) -> str:
    parts = Part.__subclasses__()
    known = {f.alias or name for part in parts for name, f in part.model_fields.items()}
    near = nearest_of(key, known, cutoff=0.6)
    return f": did you mean '{near}'?" if near else ""

"""Options as a JSON Schema and as a table, from their declarations."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spillway.options import LISTS, Kind, Option, allowed, written

_JSON_TYPES: Mapping[Kind, object] = {
    "text": ["string", "number"],  # as in rate: 1000
    "whole": "integer",
    "number": "number",
    "flag": "boolean",
    "moment": ["string", "number"],
}


def schema_of(options: Iterable[Option]) -> dict[str, Any]:
    """The JSON Schema of a mapping with these options and no others."""
    declared = tuple(options)
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
    schema["properties"] = {
        name: _schema(o) for o in declared if o.prefix is None for name in (o.name, *o.also)
    }
    families = {f"^{re.escape(o.prefix)}": _schema(o) for o in declared if o.prefix}
    needed = [option.name for option in declared if option.required]
    if families:
        schema["patternProperties"] = families
    if needed:
        schema["required"] = needed
    return schema


def table_of(options: Iterable[Option], title: str = "option") -> str:
    """The options as a Markdown table."""
    rows = [f"| {title} | value | default | meaning |", "|---|---|---|---|"]
    for option in options:
        unit = f" ({option.unit})" if option.unit else ""
        value = ", ".join(f"`{name}`" for name in option.choices) or allowed(option) + unit
        names = " or ".join(f"`{name}`" for name in (option.name, *option.also))
        cells = (names, value, _default(option), option.meaning)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return option.without if option.default is None else f"`{written(option.default)}`"


def _schema(option: Option) -> dict[str, Any]:
    kind = LISTS.get(option.kind, option.kind)
    limits = {
        "minimum": option.at_least,
        "exclusiveMinimum": option.above,
        "maximum": option.at_most,
        "exclusiveMaximum": option.below,
        "pattern": option.pattern or None,
        "enum": list(option.choices) or None,
    }
    one: dict[str, Any] = {"type": _JSON_TYPES.get(kind, "string")}
    if option.pattern:
        one["type"] = "string"
    one |= {name: limit for name, limit in limits.items() if limit is not None}
    if option.kind in LISTS:
        one = {"type": "array", "items": one, "minItems": option.count or 1}
        if option.count:
            one["maxItems"] = option.count
    unit = f" ({option.unit})" if option.unit else ""
    shown = {} if option.default is None else {"default": option.default}
    return {**one, "description": option.meaning + unit, **shown}

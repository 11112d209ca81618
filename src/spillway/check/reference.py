"""The reference of the flow file, made from the declarations: its keys and the sinks' options."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from spillway.check.declared import table_of
from spillway.flow import flow
from spillway.flow.cluster import Cluster
from spillway.flow.scale import Scale
from spillway.flow.values import OneOf, Part
from spillway.sinks import catalog as sinks

PARTS: dict[str, type[Part]] = {
    "`streams.NAME`": flow.Stream,
    "`classes.NAME`": flow.ServiceClass,
    "`queries.NAME`": flow.Query,
    "`control`": flow.Control,
    "`spark`": flow.SparkSettings,
    "`cluster`": Cluster,
    "`scale`": Scale,
}


def reference() -> str:
    """Every key of a flow file with its default and range, as Markdown."""
    return "\n".join(line for title, part in PARTS.items() for line in _table(title, part))


def sink_reference() -> str:
    """Every sink: what a crash does to it, and its options."""
    rows = ["| sink | what it does | after a crash |", "|---|---|---|"]
    tables = []
    for name in sinks.MODULES:
        rows.append(f"| `{name}` | {sinks.meaning_of(name)} | {sinks.guarantee_of(name)} |")
        if options := sinks.options_of(name):
            tables.append(f"\n`sink: {{type: {name}}}` takes\n\n{table_of(options, 'key')}")
    return "\n".join([*rows, *tables])


def _table(title: str, part: type[Part]) -> Iterator[str]:
    yield f"\n### {title}\n{part.__doc__}\n"
    yield "| key | default | meaning |\n|---|---|---|"
    for name, field in part.model_fields.items():
        meaning = "; ".join(filter(None, [field.description, _allowed(field)]))
        yield f"| `{field.alias or name}` | {_default(field)} | {meaning} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if isinstance(value, flow.Sink):
        return f"`{value.type}`"
    if value is None or value is PydanticUndefined or isinstance(value, Part):
        return ""
    return f"`{value}`" if value not in ({}, "") else ""


def _allowed(field: FieldInfo) -> str:
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [
        f"{words} {getattr(rule, key):g}"
        for rule in field.metadata
        for key, words in names.items()
        if getattr(rule, key, None) is not None
    ]
    if choices := _choices(field):
        limits.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    return ", ".join(limits)


def _choices(field: FieldInfo) -> tuple[str, ...]:
    """The names of a Literal or of a registry, also where the key may be left out."""
    inner = get_args(field.annotation)
    if inner and all(isinstance(choice, str) for choice in inner):
        return inner
    rules = [*field.metadata, *(rule for part in inner for rule in get_args(part)[1:])]
    return next((rule.names for rule in rules if isinstance(rule, OneOf)), ())

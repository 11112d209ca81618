"""The reference of the flow file in docs/flow.md, made from the declarations.

python -m spillway.check.reference docs/flow.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from spillway.flow import flow

BEGIN, END = "<!-- reference: begin -->", "<!-- reference: end -->"
PARTS: dict[str, type[flow.Part]] = {
    "`streams.NAME`": flow.Stream,
    "`classes.NAME`": flow.ServiceClass,
    "`queries.NAME`": flow.Query,
    "`sink: {type: parquet}`": flow.ParquetSink,
    "`sink: {type: kafka}`": flow.KafkaSink,
    "`sink: {type: jdbc}`": flow.JdbcSink,
    "`sink: {type: python}`": flow.PythonSink,
    "`control`": flow.Control,
    "`spark`": flow.SparkSettings,
}


def reference() -> str:
    """Every key of a flow file with its default and range, as Markdown."""
    return "\n".join(line for title, part in PARTS.items() for line in _table(title, part))


def refreshed(page: str) -> str:
    """The page with its reference as the declarations have it now."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _table(title: str, part: type[flow.Part]) -> Iterator[str]:
    yield f"\n### {title}\n{part.__doc__}\n"
    yield "| key | default | meaning |\n|---|---|---|"
    for name, field in part.model_fields.items():
        if name != "type":
            meaning = "; ".join(filter(None, [field.description, _allowed(field)]))
            yield f"| `{field.alias or name}` | {_default(field)} | {meaning} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is None or value is PydanticUndefined or isinstance(value, flow.Part):
        return "console" if isinstance(value, flow.ConsoleSink) else ""
    return f"`{value}`" if value not in ({}, "") else ""


def _allowed(field: FieldInfo) -> str:
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [
        f"{words} {getattr(rule, key):g}"
        for rule in field.metadata
        for key, words in names.items()
        if getattr(rule, key, None) is not None
    ]
    choices = getattr(field.annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        limits.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    return ", ".join(limits)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(refreshed(path.read_text()))

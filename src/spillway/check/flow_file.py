"""Reading a flow file: every error names file, line, key, value and what is allowed."""

import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spillway.check.document import Document, read_document
from spillway.check.problems import problems_of
from spillway.check.references import resolve
from spillway.check.said import problems_in
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow


def load_flow(path: Path) -> Flow:
    """The flow in a YAML file, checked before Spark starts."""
    document = read_document(path)
    value = document.value
    resolve(document)
    _resolve_paths(path.parent, value)
    if str(path.parent.absolute()) not in sys.path:
        sys.path.append(str(path.parent.absolute()))  # functions of queries in Python
    try:
        flow = Flow.model_validate(value)
    except ValidationError as error:
        found = list(problems_in(value, error))
        raise SpillwayError(*(f"{document.where(at)}: {said}" for at, said in found)) from None
    _require_sound(document, flow)
    return flow


def load_as_written(path: Path) -> Flow:
    """A flow that `load_flow` takes, with its references instead of what they stand for: for those
    who hand it on."""
    value = read_document(path).value
    _resolve_paths(path.parent, value)
    return Flow.model_validate(value)


def _require_sound(document: Document, flow: Flow) -> None:
    found = [f"{document.where(p.place, p.line)}: {p.text}" for p in problems_of(flow)]
    if found:
        raise SpillwayError(*dict.fromkeys(found))


def _resolve_paths(folder: Path, value: dict[str, Any]) -> None:
    """A CSV file is named as seen from the flow file."""
    queries = value.get("queries")
    for query in queries.values() if isinstance(queries, dict) else ():
        if isinstance(query, dict) and isinstance(query.get("instances"), str):
            query["instances"] = str((folder / query["instances"]).absolute())

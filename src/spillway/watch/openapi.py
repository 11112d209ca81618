"""The API's description, made from the values that it serves."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from spillway.watch.history import LONGEST_S, MOST_POINTS
from spillway.watch.views import Snapshot

_Schema = dict[str, Any]
_JSON = "application/json"
_ANYTHING: _Schema = {"type": "object"}
_NUMBERS: _Schema = {"type": "array", "items": {"type": ["number", "null"]}}
_CURVES: _Schema = {
    "type": "object",
    "required": ["step_s", "times_s"],
    "properties": {"step_s": {"type": "number"}},
    "additionalProperties": _NUMBERS,
}
_HISTORY: _Schema = {
    "type": "object",
    "required": ["until_s", "queries", "classes"],
    "properties": {
        "until_s": {"type": "number"},
        "queries": {"type": "object", "additionalProperties": _CURVES},
        "classes": {"type": "object", "additionalProperties": _CURVES},
    },
}
_DECISION: _Schema = {
    "type": "object",
    "required": ["time_s", "query", "class", "reason"],
    "properties": {
        "time_s": {"type": "number"},
        "query": {"type": "string"},
        "class": {"type": "string"},
        "reason": {"type": "string"},
    },
}
_ERROR: _Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "one line: what, and how to fix it"}},
}
_CHANGES: _Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 32,
    "description": "all of them or none; null makes a setting what the flow file says",
    "additionalProperties": {"type": ["string", "number", "boolean", "object", "null"]},
    "example": {"gold.delay": "p99 1s", "bronze.shedding": "paused"},
}
_TARGETS: _Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "string"},
    "example": {"gold": "p99 1s"},
}
_INSTANCES: _Schema = {
    "type": "object",
    "required": ["query"],
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string"},
        "add": {"type": "array", "items": {"type": "object"}},
        "remove": {"type": "array", "items": {"type": "integer"}},
    },
}
_SAID = {
    "400": "no JSON",
    "401": "a token is needed, or it is not known",
    "403": "the token may only look",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "422": "a value is not allowed; nothing was changed",
}


@cache
def document() -> _Schema:
    """OpenAPI 3.1."""
    state = TypeAdapter(Snapshot).json_schema(
        mode="serialization", ref_template="#/components/schemas/{model}"
    )
    schemas = {**state.pop("$defs"), "Snapshot": state, "Error": _ERROR}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Spillway, watched", "version": "1"},
        "paths": {**_standing(), **_curves(), **_changing()},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _standing() -> Mapping[str, _Schema]:
    return {
        "/healthz": {"get": _answers("Whether the driver answers", _ANYTHING)},
        "/readyz": {
            "get": _answers("Whether every query has finished a batch", _ANYTHING, refused=("503",))
        },
        "/metrics": {"get": _answers("For Prometheus", {"type": "string"}, kind="text/plain")},
        "/api/state": {"get": _answers("How everything stands", _reference("Snapshot"))},
        "/api/events": {
            "get": _answers(
                "The state again and again: server-sent events `state`",
                {"type": "string"},
                kind="text/event-stream",
            )
        },
        "/api/who": {"get": _answers("Whether the token may change something", _ANYTHING)},
    }


def _curves() -> Mapping[str, _Schema]:
    return {
        "/api/history": {
            "get": _answers(
                "Curves, down-sampled",
                _HISTORY,
                refused=("422",),
                parameters=[
                    _parameter("seconds", "number", 600, minimum=10, maximum=LONGEST_S),
                    _parameter("points", "number", 600, minimum=2, maximum=MOST_POINTS),
                    _parameter("last", "number", minimum=1, maximum=LONGEST_S),
                ],
            )
        },
        "/api/decisions": {
            "get": _answers(
                "The last decisions, newest first",
                {"type": "array", "items": _DECISION},
                refused=("422",),
                parameters=[
                    _parameter("limit", "number", 50, minimum=1, maximum=2000),
                    _parameter("query", "string"),
                    _parameter("class", "string"),
                ],
            )
        },
    }


def _changing() -> Mapping[str, _Schema]:
    by_name = {"type": "object", "additionalProperties": {"type": "array", "items": _ANYTHING}}
    return {
        "/api/preview": {"post": _changes("What new targets would cost", _TARGETS)},
        "/api/set": {"post": _changes("Change settings", _CHANGES)},
        "/api/instances": {
            "get": _answers("Instances of templates, by query", by_name),
            "post": _changes("Add and remove instances", _INSTANCES),
        },
    }


def _answers(
    summary: str,
    schema: _Schema,
    *,
    kind: str = _JSON,
    refused: tuple[str, ...] = (),
    parameters: list[_Schema] | None = None,
) -> _Schema:
    said = {status: _said(status) for status in ("401", *refused)}
    found = {"200": {"description": "as asked", "content": {kind: {"schema": schema}}}}
    given = {} if parameters is None else {"parameters": parameters}
    return {"summary": summary, **given, "responses": {**found, **said}}


def _changes(summary: str, schema: _Schema) -> _Schema:
    answers = _answers(summary, {"type": "object"}, refused=tuple(_SAID))
    body = {"required": True, "content": {_JSON: {"schema": schema}}}
    return {**answers, "requestBody": body, "security": [{"token": []}]}


def _said(status: str) -> _Schema:
    content = {_JSON: {"schema": _reference("Error") if status != "503" else {"type": "object"}}}
    return {"description": _SAID.get(status, "not yet"), "content": content}


def _parameter(name: str, kind: str, default: int | None = None, **limits: float) -> _Schema:
    schema: _Schema = {"type": kind, **limits}
    if default is not None:
        schema["default"] = default
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _reference(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name}"}

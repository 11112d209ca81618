"""The JSON Schema of a flow file for editors, with the options of every log, gate and sink."""

from contextlib import suppress
from typing import Any

from spillway.check.declared import schema_of
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.load.laws import LAWS, find
from spillway.logs import catalog as logs
from spillway.logs.stream_options import stream_options
from spillway.sinks import catalog as sinks


def flow_schema() -> dict[str, Any]:
    schema = Flow.model_json_schema(by_alias=True)
    schema["$defs"]["Stream"]["allOf"] = [rule for name in logs.MODULES for rule in _stream(name)]
    schema["$defs"]["Sink"] = {"oneOf": [_sink(name) for name in sinks.MODULES]}
    manager = schema["$defs"]["ServiceClass"]["properties"]["manager"]
    manager["anyOf"] = [{"enum": list(LAWS)}, *(_law(name) for name in LAWS)]
    return schema


def _law(name: str) -> dict[str, Any]:
    """A load manager with values for its parameters."""
    schema = schema_of(find(name).parameters)
    schema["properties"] = {"law": {"const": name}, **schema["properties"]}
    schema["required"] = ["law", *schema.get("required", [])]
    return schema


def _stream(source: str) -> list[dict[str, Any]]:
    """What `options` may hold where a stream has this source."""
    with suppress(SpillwayError):  # a log whose client library is not installed: any options
        declared = [o for o in stream_options(source) if o.set_by == "user"]
        condition = {"properties": {"source": {"const": source}}, "required": ["source"]}
        consequence: dict[str, Any] = {"properties": {"options": schema_of(declared)}}
        if any(option.required for option in declared):
            consequence["required"] = ["options"]
        return [{"if": condition, "then": consequence}]
    return []


def _sink(name: str) -> dict[str, Any]:
    schema = schema_of(sinks.options_of(name))
    schema["properties"] = {"type": {"const": name}, **schema["properties"]}
    if name != "console":  # the default
        schema["required"] = ["type", *schema.get("required", [])]
    return {"description": sinks.meaning_of(name), **schema}

"""The JSON Schema for editors knows the options of every log, of the gate and of every sink."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from spillway.check.schema import flow_schema
from spillway.logs import catalog as logs
from spillway.sinks import catalog as sinks

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return flow_schema()


def options_schema(schema: dict[str, Any], source: str) -> dict[str, Any]:
    for rule in schema["$defs"]["Stream"]["allOf"]:
        if rule["if"]["properties"]["source"]["const"] == source:
            found: dict[str, Any] = rule["then"]["properties"]["options"]
            return found
    raise AssertionError(f"no rule for {source}")


@pytest.mark.parametrize("source", logs.MODULES)
def test_a_stream_has_the_options_of_its_log_and_of_the_gate(
    schema: dict[str, Any], source: str
) -> None:
    known = options_schema(schema, source)["properties"]
    declared = [option for option in logs.options_of(source) if option.set_by == "user"]
    own = [option.name for option in declared if option.prefix is None]
    assert {"poll", "first_batch", *own} <= set(known)
    assert "channel" not in known  # set by `spillway run`
    assert "topic" in known or source != "kafka"


def test_what_a_log_needs_is_required(schema: dict[str, Any]) -> None:
    assert options_schema(schema, "kafka")["required"] == ["kafka.bootstrap.servers"]
    assert "subscribe" in options_schema(schema, "kafka")["properties"]
    assert r"^kafka\." in options_schema(schema, "kafka")["patternProperties"]
    assert "required" not in options_schema(schema, "synthetic")


def test_every_sink_has_its_type_and_its_options(schema: dict[str, Any]) -> None:
    found = {part["properties"]["type"]["const"]: part for part in schema["$defs"]["Sink"]["oneOf"]}
    assert list(found) == list(sinks.MODULES)
    assert found["jdbc"]["required"] == ["type", "url", "table", "key"]
    assert found["jdbc"]["properties"]["key"]["type"] == "array"
    assert "required" not in found["console"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_use_known_options_only(schema: dict[str, Any], path: Path) -> None:
    for stream in yaml.safe_load(path.read_text())["streams"].values():
        if "source" in stream:
            known = options_schema(schema, stream["source"])["properties"]
            assert set(stream.get("options", {})) <= set(known)

"""What one declaration gives: values, refusals, known names, JSON Schema, a table."""

from typing import Any

import pytest

from spillway.check.declared import schema_of, table_of
from spillway.errors import SpillwayError
from spillway.model import Target
from spillway.options import Option, allowed, nearest, parsed, read, unknown

OPTIONS = (
    Option(name="delay", kind="target", meaning="the delay target", default="2s"),
    Option(name="Poll", kind="duration", meaning="how long it waits", default="500ms"),
    Option(name="keep", kind="number", meaning="what stays", default=0.5, at_least=0.0, at_most=1),
    Option(name="gain", kind="number", meaning="of the law", unit="1/s", above=0.0),
    Option(name="poles", kind="numbers", meaning="of the loop", default=(0.7, 0.7), count=2),
    Option(name="first", kind="whole", meaning="tuples", default=10, at_least=1),
    Option(name="dry", kind="flag", meaning="drop nothing", default=False),
    Option(name="unit", kind="choice", meaning="of times", default="s", choices=("s", "ms", "us")),
    Option(name="start", kind="moment", meaning="when it begins", without="now"),
    Option(name="call", kind="text", meaning="f", pattern=r"^\w+:\w+$", example="module:function"),
    Option(name="keys", kind="texts", meaning="columns"),
    Option(name="law.NAME", kind="number", meaning="a number of the law"),
)
TOPIC = Option(name="topic", kind="text", meaning="the topic to read", required=True)


def test_what_is_not_given_has_its_default_parsed_like_anything_else() -> None:
    values = read(OPTIONS, {})
    assert values["delay"] == Target(delay_s=2.0)
    assert values["Poll"] == 0.5
    assert values["poles"] == (0.7, 0.7)
    assert values["dry"] is False
    assert values["start"] is None
    assert values["law.NAME"] == {}


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("POLL", "2s", 2.0),
        ("keep", "1", 1.0),
        ("keep", 0.25, 0.25),
        ("poles", "0.5, 0.6", (0.5, 0.6)),
        ("poles", [0.5, 0.6], (0.5, 0.6)),
        ("first", 3, 3),
        ("dry", "Yes", True),
        ("dry", True, True),
        ("start", "2026-01-31T12:00:00", 1769860800000000),
        ("start", 1.5, 1500000),
        ("keys", ["a", "b"], ("a", "b")),
        ("keys", "a", ("a",)),
        ("unit", "us", "us"),
    ],
)
def test_a_value_comes_as_text_or_as_it_stands_in_a_flow(
    name: str, given: Any, value: object
) -> None:
    by_name = {key.lower(): found for key, found in read(OPTIONS, {name: given}).items()}
    assert by_name[name.lower()] == value


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("keep", "1.5", "option 'keep' is '1.5': it must be a number from 0 to 1"),
        ("keep", True, "option 'keep' is True: it must be a number from 0 to 1"),
        ("gain", "0", "option 'gain' is '0': it must be a number above 0"),
        ("gain", "inf", "option 'gain' is 'inf': it must be a number above 0"),
        ("poles", [0.5], r"option 'poles' is \[0.5\]: it must be 2 numbers"),
        ("first", "2.5", "option 'first' is '2.5': it must be a whole number of at least 1"),
        ("first", "0", "option 'first' is '0': it must be a whole number of at least 1"),
        ("dry", "perhaps", "option 'dry' is 'perhaps': it must be true or false"),
        ("unit", "h", "option 'unit' is 'h': it must be s, ms or us"),
        ("start", "soon", "option 'start' is 'soon': it must be epoch seconds or ISO 8601"),
        ("poll", "5", "option 'Poll' is '5': it must be a positive number with a unit"),
        ("delay", "p98 2s", "delay target is 'p98 2s'"),
        ("call", "f", "option 'call' is 'f': it must be text such as module:function"),
        ("law.gain", "high", "option 'law.gain' is 'high': it must be a number"),
    ],
)
def test_a_bad_value_is_refused_with_name_value_and_what_is_allowed(
    name: str, given: Any, expected: str
) -> None:
    with pytest.raises(SpillwayError, match=expected):
        read(OPTIONS, {name: given})


def test_what_must_be_given_says_what_it_is() -> None:
    with pytest.raises(SpillwayError, match="option 'topic' is missing: it is the topic to read"):
        read([TOPIC], {"topic": ""})


def test_names_that_nobody_declared_are_refused_with_the_nearest() -> None:
    given = {"Delay": "2s", "law.headroom": 1, "polls": "1s"}
    assert unknown(OPTIONS, given) == ["polls"]
    assert nearest(OPTIONS, "polls") == "Poll"
    with pytest.raises(SpillwayError) as caught:
        parsed([TOPIC], {"topik": "t"}, "log 'kafka'", "streams.s.{}")
    assert str(caught.value) == (
        "streams.s.topik is not known to log 'kafka': did you mean 'topic'? known are topic"
    )
    with pytest.raises(SpillwayError, match="'x' is not known to it: it takes no options"):
        parsed([], {"x": 1}, "it")


def test_the_schema_has_types_ranges_defaults_and_families() -> None:
    schema = schema_of((*OPTIONS, TOPIC))
    there = schema["properties"]
    assert schema["required"] == ["topic"]
    assert there["keep"] == {
        "type": "number",
        "minimum": 0.0,
        "maximum": 1,
        "description": "what stays",
        "default": 0.5,
    }
    assert there["gain"]["exclusiveMinimum"] == 0.0
    assert there["poles"]["items"]["type"] == "number"
    assert (there["poles"]["minItems"], there["poles"]["maxItems"]) == (2, 2)
    assert there["unit"]["enum"] == ["s", "ms", "us"]
    assert there["call"]["pattern"] == r"^\w+:\w+$"
    assert schema["patternProperties"] == {
        r"^law\.": {"type": "number", "description": "a number of the law"}
    }


def test_the_table_has_a_line_an_option() -> None:
    table = table_of((*OPTIONS, TOPIC)).splitlines()
    assert table[0] == "| option | value | default | meaning |"
    assert "| `keep` | a number from 0 to 1 | `0.5` | what stays |" in table
    assert "| `gain` | a number above 0 (1/s) |  | of the law |" in table
    assert f"| `start` | {allowed(OPTIONS[8])} | now | when it begins |" in table
    assert "| `topic` | text | required | the topic to read |" in table

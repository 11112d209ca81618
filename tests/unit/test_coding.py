from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.journal.entries import Entry, Event, encoded, entries_of
from spillway.lines import line_of
from spillway.model import Decided, Decision, Measurement

NAMES = st.text(min_size=1).filter(lambda name: name not in ("event", "time_s", "lost_lines"))


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Whatever a field may hold by its type: fields of the model come and go."""
    if hint is float:
        return st.floats(min_value=0.0, allow_infinity=False)
    if hint is int:
        return st.integers(min_value=0, max_value=(1 << 63) - 1)
    if is_dataclass(hint):
        return models(hint)
    if get_origin(hint) is tuple and get_args(hint)[1:] == (...,):
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) in (type(int | str), Union):
        return st.one_of(*map(values, get_args(hint)))
    return st.from_type(hint)


@st.composite
def models(draw: st.DrawFn, kind: Any) -> Any:
    hints = get_type_hints(kind)
    given_fields = {field.name: draw(values(hints[field.name])) for field in fields(kind)}
    try:
        return kind(**given_fields)
    except SpillwayError:
        reject()


@given(
    entry=st.builds(
        Decided,
        measurement=models(Measurement),
        decision=models(Decision),
    )
    | st.builds(
        Event,
        time_s=st.floats(allow_nan=False, allow_infinity=False),
        kind=st.text(),
        fields=st.dictionaries(NAMES, st.integers() | st.text() | st.none()),
    )
)
def test_every_entry_comes_back_as_it_was(entry: Entry) -> None:
    assert list(entries_of(line_of(encoded(entry)))) == [entry]


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: float
    unit: Literal["m", "s"] = "m"


@dataclass(frozen=True, kw_only=True)
class OtherInner:
    size: float


@dataclass(frozen=True, kw_only=True)
class Outer:
    one: Inner
    either: Inner | OtherInner
    maybe: Inner | OtherInner | None = None
    pair: tuple[int, Inner] | None = None
    many: tuple[Inner, ...] = ()
    named: Mapping[str, Inner] | None = None


OUTER = Outer(
    one=Inner(size=1.0),
    either=OtherInner(size=2.0),
    maybe=Inner(size=3.0, unit="s"),
    pair=(4, Inner(size=4.0)),
    many=(Inner(size=5.0), Inner(size=6.0)),
    named={"seven": Inner(size=7.0)},
)


def test_nested_values_come_back_as_what_they_were() -> None:
    plain = to_json(Outer, OUTER)
    assert plain["either"] == {"other_inner": {"size": 2.0}}
    assert from_json(Outer, plain) == OUTER


def test_unknown_fields_are_left_out_and_missing_ones_take_their_defaults() -> None:
    old = {"one": {"size": 1.0, "colour": "red"}, "either": {"inner": {"size": 2.0}}, "gone": 3}
    assert from_json(Outer, old) == Outer(one=Inner(size=1.0), either=Inner(size=2.0))


def test_a_missing_field_without_a_default_is_named() -> None:
    with pytest.raises(TypeError, match="size"):
        from_json(Outer, {"one": {}})


def test_an_unknown_kind_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="'third' is none of inner, other_inner"):
        from_json(Outer, {"one": {"size": 1.0}, "either": {"third": {}}})


@pytest.mark.parametrize("value", [None, 7, "one", [1], {"one": 7}, {"one": [7]}, {"either": 7}])
def test_what_cannot_be_the_value_is_refused_by_type(value: Any) -> None:
    given_fields = {"one": {"size": 1.0}, "either": {"inner": {"size": 2.0}}}
    with pytest.raises(TypeError):
        from_json(Outer, {**given_fields, **value} if isinstance(value, dict) else value)


def test_lines_of_the_first_version_can_still_be_read() -> None:
    old = {"action": {"keep_of_backlog": 7}, "reason": "seven fit", "headroom": None}
    assert from_json(Decision, old).action.tuples == 7  # type: ignore[union-attr]


@dataclass(frozen=True, kw_only=True)
class Holder:
    anything: Mapping[str, Any]


def test_what_is_declared_as_anything_comes_back_as_it_was() -> None:
    value = Holder(anything={"a": [1, {"b": None}], "c": {"d": [[]]}, "e": "f"})
    assert from_json(Holder, to_json(Holder, value)) == value

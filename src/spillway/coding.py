"""Dataclasses as JSON values and back, by their declared fields.

On the way back unknown fields are left out and missing ones take their defaults, so that lines
outlive a change of the model. Where several dataclasses are possible the value says which one:
{"keep_fraction": {"fraction": 0.5}}. A value of another type than its field's is refused: what was
damaged or made up must not get into a decision.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from spillway.errors import shown

Model = TypeVar("Model")  # a dataclass
_MOST = float("inf")
_MOST_WHOLE = 1 << 63
_known: dict[Any, Mapping[str, Any]] = {}


def to_json(kind: type[Model], value: Model) -> dict[str, Any]:
    return {name: _plain(hint, getattr(value, name)) for name, hint in _hints(kind).items()}


def from_json(kind: type[Model], value: Mapping[str, Any]) -> Model:
    """Raises TypeError or ValueError where a value cannot be made from it."""
    hints = _hints(kind)
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no {_tag(kind)}")
    return kind(**{k: _rich(hints[k], v) for k, v in value.items() if k in hints})


def _hints(kind: Any) -> Mapping[str, Any]:
    if kind not in _known:
        hints = get_type_hints(kind)
        _known[kind] = {field.name: hints[field.name] for field in fields(kind) if field.init}
    return _known[kind]


def _plain(hint: Any, value: Any) -> Any:
    if hint is Any:  # JSON already
        return value
    if is_dataclass(value) and not isinstance(value, type):
        inner = to_json(type(value), value)
        return {_tag(type(value)): inner} if len(_classes(hint)) > 1 else inner
    if isinstance(value, tuple):
        return [_plain(h, v) for h, v in zip(_items(hint, len(value)), value, strict=True)]
    if isinstance(value, Mapping):
        return {str(k): _plain(_arguments(hint)[1], v) for k, v in value.items()}
    return value


def _rich(hint: Any, value: Any) -> Any:
    if value is None and _may_be_none(hint):
        return None
    if hint is Any:
        return value
    classes = _classes(hint)
    if len(classes) > 1:
        return _tagged(classes, value)
    if classes:
        return from_json(classes[0], value)
    if isinstance(value, list):
        return tuple(_rich(h, v) for h, v in zip(_items(hint, len(value)), value, strict=True))
    if isinstance(value, dict):
        key, item = _arguments(hint) or (None, None)
        if key is None or get_origin(_members(hint)[0]) is tuple:
            raise TypeError("a table stands where none can be")
        return {key(k): _rich(item, v) for k, v in value.items()}
    if not any(_is_of(member, value) for member in _members(hint)):
        raise TypeError(f"{shown(value)} is no {getattr(hint, '__name__', hint)}")
    return value


def _is_of(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is float:
        return type(value) in (int, float) and abs(value) < _MOST
    if kind is int:
        return type(value) is int and abs(value) < _MOST_WHOLE
    return kind is Any or kind is object or type(value) is kind


def _tagged(classes: list[type[Any]], value: Mapping[str, Any]) -> Any:
    known = ", ".join(map(_tag, classes))
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is none of {known}")
    [(tag, inner)] = value.items()
    kind = next((kind for kind in classes if _tag(kind) == tag), None)
    if kind is None:
        raise ValueError(f"'{tag}' is none of {known}")
    if not isinstance(inner, Mapping):  # how journals of 0.1 write an only field
        inner = {fields(kind)[0].name: inner}
    return from_json(kind, inner)


def _members(hint: Any) -> tuple[Any, ...]:
    """Of a union without None; anything else is its own only member."""
    union = get_origin(hint) in (Union, UnionType)
    return tuple(m for m in get_args(hint) if m is not NoneType) if union else (hint,)


def _may_be_none(hint: Any) -> bool:
    return hint in (Any, object, None) or NoneType in get_args(hint)


def _classes(hint: Any) -> list[type[Any]]:
    return [m for m in _members(hint) if isinstance(m, type) and is_dataclass(m)]


def _arguments(hint: Any) -> tuple[Any, ...]:
    return get_args(_members(hint)[0])


def _items(hint: Any, length: int) -> tuple[Any, ...]:
    """The hints of a tuple's items."""
    arguments = _arguments(hint)
    if get_origin(_members(hint)[0]) is not tuple:
        raise TypeError("a list stands where none can be")
    return arguments[:1] * length if arguments[1:] == (...,) else arguments


def _tag(kind: type) -> str:
    """KeepFraction -> keep_fraction"""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()

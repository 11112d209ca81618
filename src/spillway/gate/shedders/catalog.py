"""Every shedder by name, as options ask for it and as offsets hold it.

`uniform` is the absence of one: it looks at positions alone, and so does the gate without a
shedder (gate/sampling.py). An offset says nothing about it.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, get_origin

from spillway.errors import SpillwayError, unknown_name
from spillway.gate import stored
from spillway.gate.sampling import PPM
from spillway.gate.shedders.key import Key
from spillway.gate.shedders.shedder import Shedder
from spillway.gate.shedders.strata import Strata
from spillway.gate.shedders.utility import Utility
from spillway.gate.shedders.windows import Windows
from spillway.options import Option

_EVERY: tuple[type[Shedder], ...] = (
    Key,
    Utility,
    Windows,
    Strata,
)
SHEDDERS: Mapping[str, type[Shedder]] = MappingProxyType({one.name: one for one in _EVERY})
UNIFORM = "uniform"

# Format 1 of the offset writes these for every shedder, whether it has them or not.
_ALWAYS: Mapping[str, Any] = {
    "column": "",
    "time_column": "",
    "length_us": 0,
    "limit_ppm": PPM,
    "windows": (),
    "window_tuples": 0,
    "kept_tuples": 0,
    "owed_tuples": 0,
}


def names() -> tuple[str, ...]:
    return (UNIFORM, *SHEDDERS)


def options() -> tuple[Option, ...]:
    """The options of all shedders, each once, with what each of these takes it for."""
    found: dict[str, Option] = {}
    for shedder in _EVERY:
        for option in shedder.options:
            meaning = f"shedder `{shedder.name}`: {option.meaning}"
            if option.name in found:
                meaning = f"{found[option.name].meaning}; {meaning}"
            found[option.name] = replace(option, meaning=meaning)
    return tuple(found.values())


def asked_shedder(asked: Mapping[str, str], event_time: str | None) -> Shedder | None:
    """The shedder that a gate's options ask for; None for a uniform sample."""
    name = asked.get("shedder", UNIFORM)
    if name not in names():
        raise unknown_name("shedder", name, names())
    if name == UNIFORM:
        return None
    given: dict[str, str] = {}
    for option in SHEDDERS[name].options:
        value = asked.get(option.name, option.default)
        if not value:
            raise SpillwayError(
                f"shedder '{name}' needs option '{option.name}': {option.meaning}, such as"
                f" '{option.example}'"
            )
        given[option.name] = str(value)
    return SHEDDERS[name].asked(given, event_time)


def encode_selection(selection: Shedder) -> dict[str, Any]:
    """Integers, strings and lists of them; what came after format 1, where it says more."""
    own = {
        field.name: getattr(selection, field.name)
        for field in fields(selection)
        if field.name in _ALWAYS or getattr(selection, field.name) != field.default
    }
    parts = {name: _as_list(part) for name, part in {**_ALWAYS, **own}.items()}
    return {"shedder": selection.name, **parts}


def _require_stored(kind: Any, part: Any, name: str, nested: int = 2) -> None:
    """Raise where a part is not of its field's type; a tuple holds tuples or whole numbers."""
    if kind in (int, str):
        stored.declared(kind, part, name)
    elif get_origin(kind) is tuple:
        if type(part) is not list or nested == 0:
            raise ValueError(f"{name} of a shedder is no list of numbers")
        for inner in part:
            _require_stored(kind if type(inner) is list else int, inner, name, nested - 1)


def decode_selection(value: Mapping[str, Any]) -> Shedder:
    if stored.text(value["shedder"], "shedder") not in SHEDDERS:
        raise ValueError("unknown shedder")
    shedder = SHEDDERS[value["shedder"]]
    own = {field.name for field in fields(shedder)}
    if unknown := value.keys() - own - _ALWAYS.keys() - {"shedder"}:
        raise ValueError(f"shedder {shedder.name} has no {', '.join(sorted(unknown))}")
    for field in fields(shedder):
        if field.name in value:
            _require_stored(field.type, value[field.name], field.name)
    return shedder(**{name: _as_tuple(part) for name, part in value.items() if name in own})


def _as_list(part: Any) -> Any:
    return [_as_list(inner) for inner in part] if isinstance(part, tuple) else part


def _as_tuple(part: Any) -> Any:
    return tuple(_as_tuple(inner) for inner in part) if isinstance(part, list) else part

"""Values of a stored offset, taken only as they were written: of their type, within 64 bits.

What was written by hand, torn or made up must not get into arithmetic, onto the screen or into
memory: a float among the counts would make an audit that is nearly right, a huge number a loop that
never ends.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

Flat = TypeVar("Flat")  # a dataclass of integers, strings and booleans

_MOST = 1 << 63
_SHOWN = 60  # characters of a wrong value
_UNBOUNDED = ("seed",)  # users choose it


def whole(value: Any, name: str, *, least: int = -_MOST, below: int = _MOST) -> int:
    if type(value) is not int or (name not in _UNBOUNDED and not least <= value < below):
        raise _wrong(value, name, "a whole number of at most 64 bits that makes sense there")
    return value


def count(value: Any, name: str) -> int:
    return whole(value, name, least=0)


def text(value: Any, name: str) -> str:
    if type(value) is not str or not _is_utf8(value):
        raise _wrong(value, name, "a text")
    return value


def flag(value: Any, name: str) -> bool:
    if type(value) is not bool:
        raise _wrong(value, name, "true or false")
    return value


def table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, name, "a table of values")
    return value


def flat(kind: type[Flat], value: Any, name: str) -> Flat:
    """A dataclass by the types that its fields declare; what it does not know is refused."""
    given, kinds = table(value, name), {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
    for key, part in given.items():
        declared(kinds.get(key), part, key)
    return kind(**given)


def declared(kind: Any, value: Any, name: str) -> None:
    """Raise where a value is not of the declared type; other types are for others to judge."""
    if kind is int:
        whole(value, name)
    elif kind is str:
        text(value, name)
    elif kind is bool:
        flag(value, name)


def partition(name: str) -> int:
    """Written in one way only: '00' beside '0' would be one partition twice."""
    number = int(text(name, "partition")) if name.isascii() and name.isdecimal() else -1
    if str(number) != name:
        raise _wrong(name, "partition", "a number")
    return count(number, "partition")


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: nothing could print it
        return False
    return True


def _wrong(value: Any, name: str, allowed: str) -> ValueError:
    shown = ascii(value if isinstance(value, str | int | float | None) else type(value).__name__)
    return ValueError(f"{name} is {shown[:_SHOWN]}: it must be {allowed}")

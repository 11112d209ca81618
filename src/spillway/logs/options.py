"""Typed reading of string options, with errors in the house form."""

from collections.abc import Mapping
from datetime import UTC, datetime

from spillway.errors import SpillwayError, require
from spillway.model import parse_duration_s

Options = Mapping[str, str]

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def text(options: Options, name: str, meaning: str) -> str:
    """An option that must be given."""
    value = options.get(name, "")
    if not value:
        raise SpillwayError(f"option '{name}' is missing: it is {meaning}")
    return value


def number(options: Options, name: str, default: float) -> float:
    value = options.get(name)
    try:
        return default if value is None else float(value)
    except ValueError:
        raise SpillwayError(f"option '{name}' is '{value}': it must be a number") from None


def positive(options: Options, name: str, default: float) -> float:
    value = number(options, name, default)
    require(0.0 < value < float("inf"), f"option '{name}'", value, "a number above zero")
    return value


def whole(options: Options, name: str, default: int, least: int = 0) -> int:
    value = options.get(name)
    try:
        found = default if value is None else int(value)
    except ValueError:
        raise SpillwayError(f"option '{name}' is '{value}': it must be a whole number") from None
    require(found >= least, f"option '{name}'", found, f"a whole number of at least {least}")
    return found


def flag(options: Options, name: str, default: bool = False) -> bool:
    value = options.get(name)
    if value is None:
        return default
    if value.lower() not in _BOOLEANS:
        raise SpillwayError(f"option '{name}' is '{value}': it must be true or false")
    return _BOOLEANS[value.lower()]


def seconds(options: Options, name: str, default: str) -> float:
    """A duration with its unit, such as 500ms."""
    return parse_duration_s(options.get(name, default), f"option '{name}'")


def start_us(options: Options) -> int:
    """Option `start`: epoch seconds or ISO 8601, in UTC where it names no zone."""
    value = text(
        options, "start", "when the stream begins, as epoch seconds or ISO 8601, or pinned to now"
    )
    try:
        return round(float(value) * 1e6)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise SpillwayError(
            f"option 'start' is '{value}': it must be epoch seconds or ISO 8601,"
            " for example 2026-01-31T12:00:00"
        ) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1e6)

"""Options, each declared once: parser, known names, JSON Schema and tables come from that.

The gate, every log, every sink and every load manager has a tuple of `Option`. Values come as text
(from Spark) or as they stand in a flow file; names are compared without their case, as Spark does.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from spillway.errors import SpillwayError, nearest_of, quoted, shown
from spillway.model import Target, parse_duration_s
from spillway.redaction import HIDDEN, is_secret

Kind = Literal[
    "text", "texts", "whole", "number", "numbers", "flag", "duration", "target", "choice", "moment"
]
MOST_TEXT = 100_000  # characters
_MOST_WHOLE = 1 << 63
_MOST_MOMENT_S = 253_402_300_800.0  # the year 10000

ANY = ".NAME"  # ends the name of an option that stands for a family, such as manager.NAME

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NOUNS: Mapping[Kind, str] = {
    "text": "text",
    "texts": "a list of texts",
    "whole": "a whole number",
    "number": "a number",
    "numbers": "a list of numbers",
    "flag": "true or false",
    "duration": "a duration",
    "target": "a duration, alone or after p95 or p99",
    "moment": "epoch seconds or ISO 8601, for example 2026-01-31T12:00:00",
}
LISTS: Mapping[Kind, Kind] = {"texts": "text", "numbers": "number"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `read` gives its value as str, int, float, bool, Target or a tuple of them;
    durations are in seconds, moments in microseconds since the epoch."""

    name: str
    kind: Kind
    meaning: str  # one line; an error continues "it is ..." where the option is missing
    _: KW_ONLY
    default: object = None  # as a user would write it; None: there is none
    without: str = ""  # what holds instead, where there is no default
    required: bool = False
    unit: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False  # of the choices
    refused: Mapping[str, str] = field(
        default_factory=dict, hash=False
    )  # other values, and why not
    count: int | None = None  # how many values a list has; None: one or more
    pattern: str = ""  # of a text, and of each text of a list
    example: str = ""  # what fits the pattern
    check: Callable[[str], object] | None = None  # of a text: raises SpillwayError where it is none
    set_by: Literal["user", "run"] = "user"  # run: by `spillway run`, for its own purposes
    also: tuple[str, ...] = ()  # names that mean the same, such as those of Spark's own sources

    @property
    def prefix(self) -> str | None:
        """What the names of a family begin with; None for a single option."""
        return self.name.removesuffix("NAME").lower() if self.name.endswith(ANY) else None


def read(
    options: Iterable[Option], given: Mapping[str, Any], what: str = "option '{}'"
) -> dict[str, Any]:
    """The value of every option by its declared name, None where there is none.

    Other names are left to those who share the mapping. A family's value is a dict by what follows
    the prefix. `what` says in errors where an option stands, such as "queries.q.sink.{}".
    """
    declared = tuple(options)
    there = by_own_names(declared, given)
    return {option.name: _value(option, there, what) for option in declared}


def by_own_names(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """In lower case, and each option under the name under which it is declared."""
    own = {name.lower(): option.name.lower() for option in options for name in option.also}
    there: dict[str, Any] = {}
    for name, value in lowered(given).items():
        if (same := own.get(name, name)) in there:
            other = next(n for n in lowered(given) if n != name and own.get(n, n) == same)
            raise SpillwayError(
                f"options '{other}' and '{name}' mean the same: leave one of them out"
            )
        there[same] = value
    return there


def parsed(
    options: Iterable[Option], given: Mapping[str, Any], whose: str, what: str = "option '{}'"
) -> dict[str, Any]:
    """As `read`, for a mapping that nobody shares: other names are refused."""
    declared = tuple(options)
    for name in unknown(declared, given):
        known = sorted(option.name for option in declared)
        near = nearest(declared, name)
        hint = f"did you mean '{near}'? " if near else ""
        raise SpillwayError(
            f"{what.format(shown(name))} is not known to {whose}: "
            + (f"{hint}known are {', '.join(known)}" if known else "it takes no options")
        )
    return read(declared, given, what)


def unknown(options: Iterable[Option], given: Iterable[str]) -> list[str]:
    """The names that no option declares."""
    declared = tuple(options)
    names = {name.lower() for option in declared for name in (option.name, *option.also)}
    prefixes = tuple(option.prefix for option in declared if option.prefix)
    asked = ((name, name.lower()) for name in given)
    return [name for name, low in asked if low not in names and not low.startswith(prefixes)]


def nearest(options: Iterable[Option], name: str) -> str | None:
    """The declared name that a slip most likely meant."""
    names = {name.lower(): name for option in options for name in (option.name, *option.also)}
    near = nearest_of(name.lower(), sorted(names), cutoff=0.6)
    return names[near] if near else None


def lowered(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in given.items()}


def allowed(option: Option) -> str:
    """What a value must be, in words."""
    if option.choices:
        *others, last = option.choices
        return f"{', '.join(others)} or {last}" if others else last
    if option.pattern:
        return f"{_NOUNS[option.kind]} such as {option.example}"
    noun = f"{option.count} numbers" if option.count else _NOUNS[option.kind]
    return " ".join(filter(None, [noun, _range(option)]))


def _value(option: Option, there: Mapping[str, Any], what: str) -> Any:
    if option.prefix is not None:
        names = [name for name in there if name.startswith(option.prefix)]
        return {
            name.removeprefix(option.prefix): _parse(option, there[name], what.format(shown(name)))
            for name in names
        }
    subject = what.format(option.name)
    value = there.get(option.name.lower())
    if value is None or (value == "" and option.kind in ("text", "texts")):
        if option.required:
            raise SpillwayError(f"{subject} is missing: it is {option.meaning}")
        value = option.default
    return None if value is None else _parse(option, value, subject)


def _parse(option: Option, value: object, subject: str) -> Any:
    if not _has_form(option, value):
        shape = "mapping" if isinstance(value, dict) else "list"
        raise SpillwayError(f"{subject} is a {shape}: it must be {allowed(option)}")
    text = written(value)
    if len(text) > MOST_TEXT:
        raise SpillwayError(f"{subject} has {len(text)} characters: at most {MOST_TEXT}")
    if "\0" in text:
        raise SpillwayError(f"{subject} holds a null character: leave it out")
    if option.kind == "target":
        return Target.parse(text)
    if option.kind == "duration":
        return _duration_s(option, text, subject)
    if option.check is not None and not option.pattern:
        option.check(text)
    try:
        if option.kind not in LISTS:
            return _single(option, option.kind, text)
        parts = [part.strip() for part in text.split(",")]
        if option.count not in (None, len(parts)):
            raise ValueError
        return tuple(_single(option, LISTS[option.kind], part) for part in parts)
    except (ValueError, KeyError, OverflowError):
        if why := option.refused.get(text.upper() if option.any_case else text):
            raise SpillwayError(f"{subject} is {quoted(value)}: {why}") from None
        near = nearest_of(text, option.choices)
        hint = f" (did you mean '{near}'?)" if near else ""
        given = HIDDEN if is_secret(option.name) else quoted(value)
        said = f"{subject} is {given}: it must be {allowed(option)}{hint}"
        raise SpillwayError(said) from None


def _duration_s(option: Option, text: str, subject: str) -> float:
    seconds = parse_duration_s(text, subject)
    if option.at_most is not None and seconds > option.at_most:
        raise SpillwayError(f"{subject} is '{text}': it must be at most {option.at_most:g}s")
    return seconds


def _single(option: Option, kind: Kind, text: str) -> Any:
    """ValueError or KeyError where the text is not of that kind or out of its range."""
    if kind == "flag":
        return _FLAGS[text.lower()]
    if kind == "moment":
        return _moment_us(text)
    if kind in ("whole", "number"):
        number = int(text) if kind == "whole" else float(text)
        if not (abs(number) < _MOST_WHOLE if kind == "whole" else math.isfinite(number)):
            raise ValueError
        if not _within(option, number):
            raise ValueError
        return number
    if option.choices:
        same = text.upper() if option.any_case else text
        return {c.upper() if option.any_case else c: c for c in option.choices}[same]
    if option.pattern and not (re.search(option.pattern, text) and text.isprintable()):
        raise ValueError
    return text


def _has_form(option: Option, value: object) -> bool:
    """A list where one is asked for, of nothing but values; a value elsewhere."""
    inner = value if isinstance(value, list | tuple) and option.kind in LISTS else [value]
    return not any(isinstance(one, list | tuple | dict) for one in inner)


def written(value: object) -> str:
    """A value as a user would write it in an option."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(written, value))
    return str(value)


def _moment_us(text: str) -> int:
    """In UTC where the text names no zone."""
    try:
        moment_s = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        moment_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not abs(moment_s) < _MOST_MOMENT_S:
        raise ValueError
    return round(moment_s * 1e6)


def _within(option: Option, number: float) -> bool:
    return (
        (option.at_least is None or number >= option.at_least)
        and (option.above is None or number > option.above)
        and (option.at_most is None or number <= option.at_most)
        and (option.below is None or number < option.below)
    )


def _range(option: Option) -> str:
    if option.at_least is not None and option.at_most is not None:
        return f"from {option.at_least:g} to {option.at_most:g}"
    limits = {
        "of at least": option.at_least,
        "above": option.above,
        "at most": option.at_most,
        "below": option.below,
    }
    return " and ".join(f"{words} {end:g}" for words, end in limits.items() if end is not None)

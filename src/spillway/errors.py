"""Errors a user can act on. The command line prints them as one line and exits with code 2."""

from collections.abc import Iterable
from difflib import get_close_matches

from spillway.redaction import redacted

_SHOWN = 80  # characters of a value
_MOST_LINE = 1500  # characters of a problem
_MOST_KNOWN = 40  # names of a list


class SpillwayError(Exception):
    """Bad input: says what is wrong, which value, what is allowed and how to fix it.

    One line a problem: a file may have several.
    """

    @property
    def problems(self) -> tuple[str, ...]:
        lines = (redacted(" ".join(str(part).splitlines())) for part in self.args)
        return tuple(shown(line, _MOST_LINE) for line in lines)

    def __str__(self) -> str:
        return "\n".join(self.problems)


def printable(text: str) -> str:
    """One line of text that a file held: nothing in it commands the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown(value: object, most: int = _SHOWN) -> str:
    """A value in an error: one line, not too long. Texts come without quotes."""
    text = value if isinstance(value, str) else _written(value)
    return printable(text[:most]) + ("..." if len(text) > most else "")


def quoted(value: object) -> str:
    """As `shown`, with quotes around a text."""
    return f"'{shown(value)}'" if isinstance(value, str) else shown(value)


def unknown_name(what: str, name: str, known: Iterable[str]) -> SpillwayError:
    """An unknown name, with the nearest valid one and the whole list."""
    names = sorted(known)
    near = nearest_of(name, names)
    hint = f"did you mean '{near}'? " if near else ""
    rest = f" and {len(names) - _MOST_KNOWN} more" if len(names) > _MOST_KNOWN else ""
    listed = ", ".join(shown(one) for one in names[:_MOST_KNOWN])
    return SpillwayError(f"unknown {what} '{shown(name)}': {hint}known are {listed}{rest}")


def nearest_of(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The valid name that a slip most likely meant. What is much longer than a name is none."""
    near = get_close_matches(name, list(known), n=1, cutoff=cutoff) if len(name) <= _SHOWN else []
    return near[0] if near else None


def require(condition: bool, what: str, value: object, allowed: str) -> None:
    """Raise in the house form unless `condition` holds."""
    if not condition:
        raise SpillwayError(f"{what} is {quoted(value)}: it must be {allowed}")


def _written(value: object) -> str:
    """Python writes no whole number of more than 4,300 digits."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too long to show"

"""Errors a user can act on. The command line prints them as one line and exits with code 2."""

from collections.abc import Iterable
from difflib import get_close_matches


class SpillwayError(Exception):
    """Bad input: says what is wrong, which value, what is allowed and how to fix it."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> SpillwayError:
    """An unknown name, with the nearest valid one and the whole list."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return SpillwayError(f"unknown {what} '{name}': {hint}known are {', '.join(names)}")


def require(condition: bool, what: str, value: object, allowed: str) -> None:
    """Raise in the house form unless `condition` holds."""
    if not condition:
        raise SpillwayError(f"{what} is {value!r}: it must be {allowed}")

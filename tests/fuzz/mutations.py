"""Inputs that are nearly right: texts with pieces changed, JSON with values changed."""

import json
import random
from collections.abc import Callable
from typing import Any

LONG = 5000
# fmt: off
PIECES = (
    "", " ", "\n", "\t", "\r\n", ":", ": ", "- ", "#", "'", '"', "`", ",", "|", ">", "%", "\\",
    "[", "]", "{", "}", "(", ")", "<", ">", "&a ", "*a", "!foo ", "!!python/name:os.system ",
    "!!set ", "<<: *a", "---\n", "...\n", "%YAML 9.9\n", "? ", "~", "null", "true", "yes", "on",
    ".inf", "-.inf", ".nan", "nan", "inf", "1e999", "-1", "0", "0.0", "1e-320", "007", "0x10",
    "1:30", "2024-13-45", "2026-01-31T12:00:00", "9" * LONG, "1" + "0" * 25,
    "9223372036854775808", "us", "0s", "50us", "../../etc", "/dev/null", "'" * 99,
    "\0", "\x1b[31m", "\ufeff", "\u202e", "\ud7ff", "\U0001f600", "ß", "\u0663", "[red]", ":smile:",
    "[" * LONG, "(" * LONG, "{a: " * 50, "- " * 500, "-" * LONG, "NOT " * 500, " " * LONG,
    "SELECT ", " FROM ", " WHERE ", " GROUP BY ", " JOIN ", "count(*)", "window(", "/*", "--",
    "${HOME}", "${NOPE_NOT_SET}", "${file:/nonexistent}",
)
# fmt: on
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**25, 0.5, -0.5, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "0", "1s", "\0", "\ud800", "[red]"),
    *("y" * LONG, [], [1], [[]], {}, {"a": 1}, {"": {}}, [None] * 100, {"0": {"from": 1}}),
)


def text_of(rng: random.Random, seeds: tuple[str, ...]) -> str:
    """A seed with a few pieces put in, taken out, doubled, moved or taken from another one."""
    text = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at, length = rng.randint(0, len(text)), rng.choice((0, 1, 1, 3, 10, 40))
        until = min(len(text), at + length)
        change = rng.randrange(5)
        if change == 0:
            text = text[:at] + rng.choice(PIECES) + text[until:]
        elif change == 1:
            text = text[:at] + text[until:]
        elif change == 2:
            text = text[:until] + text[at:until] * rng.choice((1, 2, 50)) + text[until:]
        elif change == 3:
            text = _with_a_word(rng, text)
        else:
            other = rng.choice(seeds)
            start = rng.randint(0, len(other))
            text = text[:at] + other[start : start + length] + text[until:]
    return text[:200_000]


def _with_a_word(rng: random.Random, text: str) -> str:
    """A whole word or number becomes something else."""
    words = [word for word in text.replace("\n", " ").split(" ") if word]
    return text.replace(rng.choice(words), rng.choice(PIECES), 1) if words else text


def bytes_of(rng: random.Random, seeds: tuple[str, ...]) -> bytes:
    data = bytearray(text_of(rng, seeds).encode("utf-8", "surrogatepass"))
    if data and rng.random() < 0.1:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def json_of(rng: random.Random, seed: Any) -> Any:
    """The value with one or two of its parts changed, added, renamed or taken out."""
    value = json.loads(json.dumps(seed))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(rng, value)
    return value


def _changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        change = rng.randrange(8)
        if change == 0:
            return {k: v for k, v in value.items() if k != key}
        if change == 1:
            return {(rng.choice(PIECES)[:50] if k == key else k): v for k, v in value.items()}
        if change == 2:
            return {**value, rng.choice(PIECES)[:50]: rng.choice(VALUES)}
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        change = rng.randrange(4)
        if change == 0:
            return value[:at] + value[at + 1 :]
        if change == 1:
            return [*value[:at], value[at], *value[at:]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    if type(value) is int and rng.random() < 0.4:
        return value + rng.choice((-1, 1, 2**20, -(2**20), 2**40))
    if type(value) is str and value and rng.random() < 0.4:
        return text_of(rng, (value,))[:LONG]
    return rng.choice(VALUES)


def lines_of(rng: random.Random, seeds: list[Any]) -> bytes:
    """JSON lines, most of them whole, one or two changed, some torn, doubled or moved."""
    lines = [json.dumps(value) for value in seeds]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(lines))
        lines[at] = json.dumps(json_of(rng, seeds[at]))
    if rng.random() < 0.2:
        at = rng.randrange(len(lines))
        lines[at] = text_of(rng, (lines[at],)).replace("\n", " ")
    change: Callable[[list[str]], list[str]] = rng.choice(
        (
            *(lambda found: found,) * 4,
            lambda found: found + found[-1:],
            lambda found: found[::-1],
            lambda found: found[1:],
            lambda found: [*found, "[" * 100_000],
            lambda found: [*found, ""],
        )
    )
    data = bytearray("".join(line + "\n" for line in change(lines)).encode("utf-8", "replace"))
    if data and rng.random() < 0.2:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.05 else data)

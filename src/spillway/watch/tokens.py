"""Who may look and who may change things: names with secrets, in a file that only its owner reads.

operator 5rX...                 may change settings
grafana  9aQ...  read           may look, where looking needs a token
"""

import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spillway.errors import SpillwayError

SHORTEST = 16  # characters of a secret
OPERATOR = "operator"
_LINE = re.compile(r"(?P<name>[\w.@-]{1,64})\s+(?P<secret>\S{1,512})(?:\s+(?P<right>\S+))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    name: str
    secret: str
    may_change: bool = True

    def __repr__(self) -> str:
        return f"Token({self.name})"  # a secret never gets into a message


def load_tokens(path: Path) -> tuple[Token, ...]:
    try:
        mode, text = path.stat().st_mode, path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SpillwayError(
            f"'{path}' cannot be read ({error}): write a line NAME SECRET for"
            " everybody who may change settings, NAME SECRET read for those who may only look"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SpillwayError(f"'{path}' holds secrets and others may read it: chmod 600 {path}")
    found = tuple(_tokens(text.splitlines(), path))
    if not found:
        raise SpillwayError(f"'{path}' holds no token: write a line NAME SECRET")
    return found


def own_tokens(path: Path) -> tuple[Token, ...]:
    """Those of a flow's folder, made at the first start: whoever may read the folder may steer."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{OPERATOR} {secrets.token_urlsafe(24)}\n")
    return load_tokens(path)


def owner_of(secret: str, tokens: Iterable[Token]) -> Token | None:
    """Takes as long for a wrong secret as for a right one."""
    found = None
    for token in tokens:
        if hmac.compare_digest(token.secret.encode(), secret.encode()):
            found = token
    return found


def _tokens(lines: Iterable[str], path: Path) -> Iterable[Token]:
    names: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match["right"] not in (None, "read"):
            raise SpillwayError(f"line {number} of '{path}' is no token: write NAME SECRET [read]")
        if len(match["secret"]) < SHORTEST:
            raise SpillwayError(
                f"line {number} of '{path}' has a secret of {len(match['secret'])} characters:"
                f" at least {SHORTEST} are needed"
            )
        if match["name"] in names:
            raise SpillwayError(f"line {number} of '{path}' names '{match['name']}' again")
        names.add(match["name"])
        yield Token(name=match["name"], secret=match["secret"], may_change=match["right"] is None)

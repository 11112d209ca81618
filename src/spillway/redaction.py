"""Secrets stay out of what is printed and written: by the name of an option, and by its value.

Each process remembers the values that it was given under a secret's name; whatever it says passes
through `redacted`. What looks like a password within a URL goes without being remembered.
"""

import re
from collections.abc import Mapping

HIDDEN = "***"
_NAMES = re.compile(
    r"passw|passphrase|pwd$|secret|token|credential|jaas|private.?key|access.?key|api.?key|\.pem$",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?<=://)[^/\s:@']{0,256}:[^/\s@']{1,256}(?=@)")
_IN_QUERY = re.compile(r"(?<=[?&;])([\w.]{0,64}(?:password|secret|token))=[^&;\s']+", re.IGNORECASE)
_SHORTEST = 4  # characters: shorter ones would be found everywhere

# Of Spark's own plans and messages.
FOR_SPARK = r"(?i)url|passw|secret|token|credential|jaas|private|access[.]?key"

_known: set[str] = set()


def is_secret(name: str) -> bool:
    return _NAMES.search(name) is not None


def is_in_url(text: str) -> bool:
    """Whether a password stands in a URL."""
    return "://" in text and bool(_IN_URL.search(text) or _IN_QUERY.search(text))


def remember(options: Mapping[str, object]) -> None:
    """From now on these values are hidden in this process, where their names are a secret's."""
    for name, value in options.items():
        if is_secret(name):
            remember_value(str(value))


def remember_value(value: str) -> None:
    if len(value) >= _SHORTEST:
        _known.add(value)


def redacted(text: str) -> str:
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    if "://" in text:
        text = _IN_QUERY.sub(rf"\1={HIDDEN}", _IN_URL.sub(f"{HIDDEN}:{HIDDEN}", text))
    return text

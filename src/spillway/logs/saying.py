"""What a user should hear of a log: planners and workers have no way but standard error, which
Spark passes on."""

import sys

from spillway.redaction import redacted

_said: set[str] = set()


def say_once(text: str) -> None:
    """Once in a process, however often it holds."""
    text = redacted(text)
    if text not in _said:
        _said.add(text)
        print(f"spillway: {text}", file=sys.stderr, flush=True)

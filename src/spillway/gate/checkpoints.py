"""Where a query's checkpoint is, and the ledger beside it."""

import os

from spillway.errors import SpillwayError
from spillway.uris import is_remote, local


def place_of(value: str | None) -> str | None:
    """Plain where it is on this machine, else a URI."""
    return value if value is None or is_remote(value) else local(value)


def default_ledger(checkpoint: str | None) -> str | None:
    """Beside Spark's own logs, which Spark never purges."""
    if checkpoint is None:
        return None
    if is_remote(checkpoint):
        return f"{checkpoint.rstrip('/')}/spillway/ledger"
    return os.path.join(checkpoint, "spillway", "ledger.jsonl")


def require_local(name: str, value: str | None) -> None:
    """Such a file is appended to, which object stores cannot."""
    if value is not None and is_remote(value):
        raise SpillwayError(f"option '{name}' is '{value}': it must be on this machine's own disk")

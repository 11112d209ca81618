"""Where a query's checkpoint is, and the ledger beside it."""

import os


def local_path(checkpoint: str | None) -> str | None:
    """Spark takes a folder as a path and as a URI."""
    if checkpoint is None or not checkpoint.startswith("file:"):
        return checkpoint
    return checkpoint.removeprefix("file:").replace("///", "/", 1)


def default_ledger(checkpoint: str | None) -> str | None:
    """Beside Spark's own logs, which Spark never purges; only a local disk can be appended to."""
    if checkpoint is None or "://" in checkpoint:
        return None
    return os.path.join(checkpoint, "spillway", "ledger.jsonl")

"""Spark's checkpoint folder, read without Spark. Local disks only."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset, decode, is_sentinel


@dataclass(frozen=True, kw_only=True)
class LoggedBatch:
    """One batch of Spark's offset log: an offset for each source, None where it had none."""

    batch_id: int
    sources: tuple[Any, ...]
    completed: bool

    def gates(self) -> list[Offset]:
        """The offsets that are ours."""
        ours = [s for s in self.sources if isinstance(s, dict) and "began_us" in s]
        return [decode(offset) for offset in ours if not is_sentinel(offset)]


def logged_batches(checkpoint: Path) -> list[LoggedBatch]:
    """What Spark has not purged yet, in the order of the batches."""
    folder = checkpoint / "offsets"
    if not folder.is_dir():
        raise SpillwayError(
            f"'{checkpoint}' is no checkpoint: it has no folder 'offsets';"
            " give the checkpointLocation of the query"
        )
    names = sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit())
    return [_read(checkpoint, batch_id) for batch_id in names]


def _read(checkpoint: Path, batch_id: int) -> LoggedBatch:
    """A version line, a line of metadata, then one line a source."""
    path = checkpoint / "offsets" / str(batch_id)
    lines = path.read_text().splitlines()
    if not lines or not lines[0].startswith("v"):
        raise SpillwayError(f"'{path}' is not an offset file of Spark: restore the checkpoint")
    try:
        sources = tuple(None if line == "-" else json.loads(line) for line in lines[2:])
    except ValueError:
        raise SpillwayError(f"'{path}' is damaged: restore the checkpoint") from None
    completed = (checkpoint / "commits" / str(batch_id)).exists()
    return LoggedBatch(batch_id=batch_id, sources=sources, completed=completed)

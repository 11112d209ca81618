"""The ledger's file: one line a finished batch, appended, never in the way of the query."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spillway.lines import WaitingLines, line_of, whole_lines

_TAIL_BYTES = 1 << 22  # thousands of batches: what a start looks at, however long the ledger is

Life = tuple[str, int]  # gate, and when it began


class Archive:
    """Appends the offsets of finished batches, each once, in order.

    A line that a kill has torn is written again, because Spark shows the same offset again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = WaitingLines(path, "ledger")
        self._last: dict[Life, int] = {}
        self._tail_is_read = False
        self._is_long = False  # more than its tail, as it was found

    def add(self, offset: dict[str, Any]) -> None:
        """`offset` is an encoded offset whose batch Spark has completed."""
        life, seq = (offset["gate"], offset["began_us"]), offset["seq"]
        if seq > self._recall(life):
            self._last[life] = seq
            self._lines.add(line_of(offset))

    def _recall(self, life: Life) -> int:
        """The last batch of a gate's life that the ledger has. Its line is near the end, unless
        the file is an old one and the life is new."""
        with suppress(OSError):  # not there yet, or the disk refuses: looked at again
            if not self._tail_is_read:
                self._is_long = self._path.stat().st_size > _TAIL_BYTES
                self._remember(whole_lines(self._path, _TAIL_BYTES))
                self._tail_is_read = True
            if life not in self._last and self._is_long:
                gate = line_of(life[0])
                self._remember(line for line in whole_lines(self._path) if gate in line)
        return self._last.setdefault(life, -1)

    def _remember(self, lines: Iterable[bytes]) -> None:
        """Note the last batch of every life."""
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):  # damaged: the audit says so
                record = json.loads(line)
                life, seq = (record["gate"], record["began_us"]), record["seq"]
                self._last[life] = max(seq, self._last.get(life, -1))

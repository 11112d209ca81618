"""The ledger's file: one line a finished batch, appended, never in the way of the query."""

import json
import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

_KEPT_LINES = 100_000  # what a full disk may hold up in memory before the oldest go
_TAIL_BYTES = 1 << 22  # thousands of batches: what a start looks at, however long the ledger is

Life = tuple[str, int]  # gate, and when it began


class Archive:
    """Appends the offsets of finished batches, each once, in order.

    A kill can tear the last line: it is cut off at the next start and written again, because Spark
    shows the same offset again. A disk that refuses keeps nobody waiting: lines stay in memory and
    are tried again with every batch.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[Life, int] = {}
        self._unread_bytes = 0  # of the ledger as it was found, before its tail
        self._waiting: deque[str] = deque(maxlen=_KEPT_LINES)
        self._opened = False
        self._failing = False

    def add(self, offset: dict[str, Any]) -> None:
        """`offset` is an encoded offset whose batch Spark has completed."""
        try:
            self._open()
        except OSError as error:
            self._complain(error)
        life, seq = (offset["gate"], offset["began_us"]), offset["seq"]
        if seq <= self._recall(life):
            return
        self._last[life] = seq
        self._waiting.append(json.dumps(offset, separators=(",", ":")) + "\n")
        self._flush()

    def _open(self) -> None:
        if self._opened:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            _cut_torn_line(self._path)
            self._unread_bytes = max(0, self._path.stat().st_size - _TAIL_BYTES)
            self._remember(self._unread_bytes, b"")
        self._opened = True

    def _recall(self, life: Life) -> int:
        """The last batch of a gate's life that the ledger has. Its line is near the end, unless
        the file is an old one and the life is new."""
        if life not in self._last:
            self._last[life] = -1
            if self._unread_bytes > 0:
                with suppress(OSError):
                    self._remember(0, life[0].encode())
        return self._last[life]

    def _remember(self, start: int, gate: bytes) -> None:
        """Note the last batch of every life from a byte on, in lines that name the gate."""
        with self._path.open("rb") as file:
            file.seek(start)
            if start > 0:
                file.readline()  # most likely the rest of a line
            for line in file:
                if gate in line:
                    with suppress(ValueError, KeyError, TypeError):  # damaged: the audit says so
                        record = json.loads(line)
                        self._last[record["gate"], record["began_us"]] = record["seq"]

    def _flush(self) -> None:
        try:
            self._open()
            with self._path.open("ab", buffering=0) as file:
                while self._waiting:
                    _append(file.fileno(), self._waiting[0].encode())
                    self._waiting.popleft()
            self._failing = False
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        if not self._failing:
            print(f"spillway: ledger {self._path} cannot be written ({error});", file=sys.stderr)
            print("spillway: the query goes on, lines are kept and tried again", file=sys.stderr)
        self._failing = True


def _append(descriptor: int, line: bytes) -> None:
    """All of a line or nothing: a disk that fills up in the middle leaves no torn line."""
    before = os.fstat(descriptor).st_size
    written = os.write(descriptor, line)
    if written != len(line):
        os.ftruncate(descriptor, before)
        raise OSError("no space for a whole line")


def _cut_torn_line(path: Path) -> None:
    """Whatever follows the last line's end."""
    with path.open("rb+") as file:
        size = place = file.seek(0, os.SEEK_END)
        while place > 0:
            start = max(0, place - _TAIL_BYTES)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                place = start + found + 1
                break
            place = start
        if place != size:
            file.truncate(place)

"""Append-only files of JSON lines: ledgers, journals, stores of instances, dead letters.

A line is there once its newline is. What follows the last newline is being written, or a kill has
torn it: readers never see it, and the next writer cuts it off. Planners and workers import this
module: it stays light.
"""

import fcntl
import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from typing import Any, BinaryIO

from spillway.private import make_private, open_private

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND
_BLOCK_BYTES = 1 << 16  # of one look back for the last newline
_WAITING_LINES = 100_000  # what a full disk may hold up in memory before the oldest go


def line_of(value: Any) -> bytes:
    """A value as JSON; no newline can be in it."""
    return json.dumps(value, separators=(",", ":")).encode()


class LineWriter:
    """The end of a file that nobody else writes to now."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def append(self, *lines: bytes, durable: bool = False) -> None:
        """All of the lines or none: a disk that fills up in the middle leaves nothing behind.

        `durable` lines outlive a crash of the machine; the others only one of the process.
        """
        data = b"".join(line + b"\n" for line in lines)
        before = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, data) != len(data):
                raise OSError(ENOSPC, "no space for a whole line")
            if durable:
                os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):  # then the next writer cuts it
                os.ftruncate(self._descriptor, before)
            raise


@contextmanager
def line_writer(path: Path) -> Iterator[LineWriter]:
    """Opens a file behind its last whole line; other writers wait until it is left again."""
    make_private(path.parent)
    with os.fdopen(open_private(path, _APPEND), "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _cut_torn_line(file.fileno())
        yield LineWriter(file.fileno())


def append(path: Path, *lines: bytes) -> None:
    with line_writer(path) as file:
        file.append(*lines)


def whole_lines(path: Path, last_bytes: int | None = None) -> Iterator[bytes]:
    """The lines of a file, or those that lie in its last bytes; one at a time is in memory."""
    with path.open("rb") as file:
        if last_bytes is not None:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - last_bytes - 1))
            if size > last_bytes:
                file.readline()  # the rest of a line, or the end of the one before
        yield from lines_in(file)


def lines_in(file: BinaryIO, longest_bytes: int = -1) -> Iterator[bytes]:
    """The whole lines of an open file from where it stands, without their newlines. With a bound
    nothing longer gets into memory: a ValueError."""
    while line := file.readline(longest_bytes):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif 0 <= longest_bytes <= len(line):
            raise ValueError(f"longer than {longest_bytes} bytes")
        else:  # torn, or still being written: the rest of it is no line
            return


class WaitingLines:
    """Appends without ever being in the way: what the disk refuses waits in memory and is tried
    again with every later line. Says so once."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._waiting: deque[bytes] = deque(maxlen=_WAITING_LINES)
        self._refused = False

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        try:
            with line_writer(self._path) as file:
                while self._waiting:
                    file.append(self._waiting[0])
                    self._waiting.popleft()
            self._refused = False
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        if not self._refused:
            what = f"{self._what} {self._path}"
            print(f"spillway: {what} cannot be written ({error});", file=sys.stderr)
            print("spillway: the query goes on, lines are kept and tried again", file=sys.stderr)
        self._refused = True


def _cut_torn_line(descriptor: int) -> None:
    size = end = os.fstat(descriptor).st_size
    step = 1  # as a rule the last byte is the newline
    while end > 0:
        start = max(0, end - step)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end, step = start, _BLOCK_BYTES
    if end != size:
        os.ftruncate(descriptor, end)

"""The journal on disk: JSON lines, one a decision or an event, bounded by size and age.

The journal never stops a query. When a line cannot be written (a full disk, a folder that has
gone) it is counted; the first line that can be written again says how many were lost.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.journal.entries import DAMAGED, Entry, Event, encoded, entries_of, time_of
from spillway.journal.rotation import open_files, rotated, shift
from spillway.journal.summary import retire
from spillway.lines import append, line_of, lines_in, whole_lines
from spillway.model import Decided, Decision, Measurement
from spillway.redaction import redacted

_LONGEST_LINE_BYTES = 1 << 24


class FileJournal:
    """Appends to `path`; a file that is full or old becomes path.1, path.1 becomes path.2, and so
    on. What is older than `keep_files` of them is summarised by the hour and removed.

    `max_bytes` of a file, `max_age_s` of its first line by the times that are recorded.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 64 << 20,
        max_age_s: float = 24 * 3600.0,
        keep_files: int = 7,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._keep_files = keep_files
        self._began_s: float | None = None  # the first line of the current file; None: unknown
        self._lost_lines = 0
        self._retiring: Thread | None = None
        self._lock = Lock()  # the loop and its supervision both write

    @property
    def lost_lines(self) -> int:
        return self._lost_lines

    def record(self, measurement: Measurement, decision: Decision) -> None:
        decided = Decided(measurement=measurement, decision=decision)
        self._write(measurement.time_s, decided)

    def event(self, time_s: float, kind: str, **fields: Any) -> None:
        """Something that is no decision: a start, a restart, a loop that went away."""
        fields = {k: redacted(v) if isinstance(v, str) else v for k, v in fields.items()}
        self._write(time_s, Event(time_s=time_s, kind=kind, fields=fields))

    def close(self) -> None:
        """Waits until what was rotated out is summarised."""
        if self._retiring is not None:
            self._retiring.join()

    def _write(self, time_s: float, entry: Entry) -> None:
        with self._lock:
            lost = {"lost_lines": self._lost_lines} if self._lost_lines else {}
            line = line_of({**encoded(entry), **lost})
            try:
                if self._is_full(time_s, len(line) + 1) and self._may_rotate():
                    self._rotate()
                    self._began_s = time_s
                append(self._path, line)
            except OSError:
                self._lost_lines += 1
            else:
                self._lost_lines = 0

    def _is_full(self, time_s: float, upcoming_bytes: int) -> bool:
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == 0:
            self._began_s = time_s
            return False
        if self._began_s is None:
            self._began_s = _first_time_s(self._path, time_s)
        age_s = abs(time_s - self._began_s)  # a clock may be set back
        return age_s > self._max_age_s or size + upcoming_bytes > self._max_bytes

    def _may_rotate(self) -> bool:
        """While an old file is still being summarised the current one grows, up to twice its size:
        the loop and the gates behind it do not wait for a disk."""
        busy = self._retiring is not None and self._retiring.is_alive()
        return not busy or self._path.stat().st_size >= 2 * self._max_bytes

    def _rotate(self) -> None:
        self.close()  # numbers must not move under it
        shift(self._path)
        if max(rotated(self._path), default=0) <= self._keep_files:
            return
        self._retiring = Thread(target=self._retire)  # takes seconds: not in the loop's way
        self._retiring.start()

    def _retire(self) -> None:
        with suppress(OSError):  # tried again at the next rotation
            for number, file in reversed(rotated(self._path).items()):
                if number > self._keep_files:
                    retire(self._path, file)


def read_journal(path: Path) -> Iterator[Entry]:
    """Everything that is kept whole, in the order of its writing, for replays and reports."""
    try:
        with open_files(path) as files:
            if not files:
                raise SpillwayError(f"there is no journal at {path}")
            for name, file in files:
                for number, line in enumerate(lines_in(file, _LONGEST_LINE_BYTES), start=1):
                    yield from _entries(line, f"{name}:{number}")
    except OSError as error:
        raise SpillwayError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SpillwayError(f"{path} is no journal: a line is {error}") from None


def _entries(line: bytes, where: str) -> list[Entry]:
    try:
        return list(entries_of(line))
    except DAMAGED as error:
        said = f"{type(error).__name__}: {shown(str(error))}"
        raise SpillwayError(f"{where} is not a journal line ({said}): it is damaged") from None


def _first_time_s(path: Path, otherwise_s: float) -> float:
    with suppress(*DAMAGED, StopIteration):
        return time_of(json.loads(next(whole_lines(path))))
    return otherwise_s

"""A ledger on storage that does not append: a folder of numbered segments.

A segment is an object of JSON lines, written anew with every line until it is full, and never
touched again. So a kill leaves whole lines only. Every driver begins a segment of its own, and the
numbers have no holes: a segment that is missing shows.
"""

import atexit
import io
import json
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from spillway.errors import SpillwayError
from spillway.lines import line_of, lines_in
from spillway.storage import Place, Remote

FULL_BYTES = 1 << 18  # of a segment: written again so often that it stays cheap
_NAME = re.compile(r"([0-9]{12})\.jsonl")
_WAITING_LINES = 100_000  # what an outage may hold up in memory before the oldest go
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.5, 30.0
_END_S = 5.0  # how long a process that ends waits for its last lines

Write = Callable[[Remote, bytes], None]


def segments_of(ledger: Remote) -> list[Remote]:
    """In order; raises where one is missing."""
    found = {int(m[1]): s for s in ledger.iterdir() if (m := _NAME.fullmatch(s.name))}
    numbers = sorted(found)
    if numbers and numbers[-1] - numbers[0] + 1 != len(numbers):
        missing = next(n for n in range(numbers[0], numbers[-1]) if n not in found)
        raise SpillwayError(f"'{ledger}' has no segment {missing:012}: restore it")
    return [found[number] for number in numbers]


def parts_of(path: Place, begin: int) -> Iterator[tuple[int, BinaryIO]]:
    """Where each part of a ledger begins: a file is one, from `begin` on."""
    if isinstance(path, Remote):
        at = 0
        for segment in segments_of(path):
            data = segment.read_bytes()
            yield at, io.BytesIO(data)
            at += len(data)
        return
    if not path.is_file():
        raise SpillwayError(f"'{path}' is no ledger: give the file of option 'ledger'")
    with path.open("rb") as file:
        yield file.seek(begin), file


class SegmentWriter:
    """Takes lines and never waits: a thread writes them, and tries again while the storage does
    not answer. Says so once."""

    def __init__(self, ledger: Remote, write: Write = Remote.write_bytes) -> None:
        self._ledger, self._write = ledger, write
        self._waiting: deque[bytes] = deque(maxlen=_WAITING_LINES)
        self._changed = threading.Condition()
        self._number: int | None = None  # of the segment that is open
        self._lines: list[bytes] = []  # in it
        self._retry_s = 0.0
        self._ending = False
        self._thread: threading.Thread | None = None

    def add(self, line: bytes) -> None:
        with self._changed:
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            self._changed.notify_all()

    def close(self) -> None:
        """Lines that storage takes within seconds are there; the next start recalls the others."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                more = list(self._waiting)
            if self._written(more):
                self._retry_s = 0.0
                with self._changed:
                    for line in more:
                        if self._waiting and self._waiting[0] is line:
                            self._waiting.popleft()
            else:
                with self._changed:
                    if self._ending:
                        return
                    self._changed.wait_for(lambda: self._ending, self._retry_s)

    def _written(self, more: list[bytes]) -> bool:
        try:
            if self._number is None:
                self._number = _next_number(self._ledger)
            lines = [*self._lines, *more]
            data = b"".join(line + b"\n" for line in lines)
            self._write(self._ledger / f"{self._number:012}.jsonl", data)
        except (OSError, SpillwayError) as error:
            self._complain(error)
            self._retry_s = min(_LONGEST_RETRY_S, max(_FIRST_RETRY_S, 2.0 * self._retry_s))
            return False
        self._lines = lines
        if len(data) >= FULL_BYTES:
            self._number, self._lines = self._number + 1, []
        return True

    def _complain(self, error: Exception) -> None:
        if self._retry_s == 0.0:
            said = " ".join(str(error).split())[:300]
            print(
                f"spillway: ledger {self._ledger} cannot be written ({said}); the query goes on,"
                " lines are kept and tried again",
                file=sys.stderr,
                flush=True,
            )


def _next_number(ledger: Remote) -> int:
    numbers = [int(m[1]) for s in ledger.iterdir() if (m := _NAME.fullmatch(s.name))]
    return max(numbers, default=0) + 1


def last_lines(ledger: Remote, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """The last line that is wanted, of the latest segment that has one."""
    for segment in reversed(segments_of(ledger)):
        for line in reversed(list(lines_in(io.BytesIO(segment.read_bytes())))):
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict) and wanted(value):
                    return value
    return None


class SegmentArchive:
    """As `Archive`, for a ledger of segments. What a kill left unwritten is recalled from Spark's
    own log of the last batches."""

    def __init__(
        self,
        ledger: Remote,
        logged: Callable[[], Iterable[dict[str, Any]]],
        write: Write = Remote.write_bytes,
    ) -> None:
        self._ledger, self._logged = ledger, logged
        self._writer = SegmentWriter(ledger, write)
        self._last: dict[tuple[str, int], int] = {}

    def hold(self) -> None:
        """Nothing to hold: such storage has no locks, and every driver writes its own segments."""

    def add(self, offset: dict[str, Any]) -> None:
        life, seq = (offset["gate"], offset["began_us"]), offset["seq"]
        if life not in self._last:
            self._last[life] = self._recall(life)
            for earlier in self._logged():
                if (earlier["gate"], earlier["began_us"]) == life and earlier["seq"] < seq:
                    self._put(life, earlier)
        self._put(life, offset)

    def _put(self, life: tuple[str, int], offset: dict[str, Any]) -> None:
        if offset["seq"] > self._last[life]:
            self._last[life] = offset["seq"]
            self._writer.add(line_of(offset))

    def _recall(self, life: tuple[str, int]) -> int:
        """The last batch that the ledger has; where it does not answer, all are written again,
        which an audit takes for what it is."""
        with suppress(OSError, SpillwayError):
            found = last_lines(self._ledger, lambda v: (v.get("gate"), v.get("began_us")) == life)
            if found is not None:
                return int(found["seq"])
        return -1

"""The end of a journal, without reading all of it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.journal.entries import Entry, entries_of
from spillway.lines import whole_lines

LAST_BYTES = 8 << 20  # thousands of decisions


def recent_entries(path: Path, last_bytes: int = LAST_BYTES) -> Iterator[Entry]:
    """Of its current file. Lines that are damaged are passed over: this is for looking."""
    for line in whole_lines(path, last_bytes):
        with suppress(ValueError, TypeError, KeyError, AttributeError, SpillwayError):
            yield from entries_of(line)

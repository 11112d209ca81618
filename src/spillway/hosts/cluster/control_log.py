"""The port through which coordinators and nodes talk: a log of records, the only state there is.

Three promises, kept by every adapter and by one contract suite over them:
- a record whose `append` has returned is seen by every `read` that begins afterwards, by anybody;
- an `append` that expects a position succeeds only if nothing was appended from that position on;
- the last record of every key is kept for ever, older ones may go.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from spillway.errors import SpillwayError
from spillway.hosts.cluster.records import Entries, Placed, Record

Check = Callable[[Record], str | None]  # why a record cannot be taken; None: it can


class OvertakenError(SpillwayError):
    """Somebody else appended first: read on and decide again."""


class AwayError(SpillwayError):
    """The log does not answer. Whether the last append is in it only a later read can tell."""


class ControlLog(Protocol):
    def read(self, position: int) -> Entries:
        """Everything from a position on (0: from the start). Raises AwayError."""
        ...

    def append(self, record: Record, expected: int | None = None) -> int:
        """The position behind the record. `expected` is where the writer has read to.

        Raises OvertakenError where the log goes on behind `expected`, AwayError where it cannot
        be told whether the record is there.
        """
        ...

    def close(self) -> None: ...


class Latest:
    """A log as one reader knows it: the last record of every key, of those that pass the check."""

    def __init__(self, log: ControlLog, check: Check = lambda record: None) -> None:
        self.log = log
        self._check = check
        self.position = 0
        self.by_key: dict[str, Placed] = {}

    def read_on(self) -> Entries:
        entries = self._sound(self.log.read(self.position))
        if entries.whole:
            self.by_key = {}
        for placed in entries.placed:
            self._take(placed)
        self.position = entries.next
        return entries

    def append(self, record: Record) -> None:
        """Only if nobody appended since it was read last; then it is known at once."""
        at = self.position
        self.position = self.log.append(record, at)
        self._take(Placed(position=self.position - 1, record=record))

    def _sound(self, entries: Entries) -> Entries:
        """Without those that cannot be taken, which are told."""
        found = [(placed, self._check(placed.record)) for placed in entries.placed]
        told = tuple(f"record {placed.position}: {why}" for placed, why in found if why)
        if not told:
            return entries
        sound = tuple(placed for placed, why in found if not why)
        return replace(entries, placed=sound, skipped=entries.skipped + told)

    def _take(self, placed: Placed) -> None:
        if placed.record.body is None:
            self.by_key.pop(placed.record.key, None)
        else:
            self.by_key[placed.record.key] = placed

    def of(self, prefix: str) -> dict[str, Placed]:
        """Those whose keys begin with it, by the rest of the key."""
        return {k.removeprefix(prefix): p for k, p in self.by_key.items() if k.startswith(prefix)}

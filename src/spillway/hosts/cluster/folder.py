"""A control log in a folder: one numbered file a record.

A record is written aside, made durable, and then given its number by link(2), which fails where
the number is taken. So there is no lock that a frozen process could hold, and no half a record.

Every SEGMENT records, what is older becomes one snapshot: the last record of every key. A snapshot
is named by its floor, the first number that is not in it; files below the floor are nothing any
more. A writer that froze may link such a number long after it was removed: so it looks for the
floor after it has linked, and takes its record back. Snapshots of one floor are the same whoever
writes them.
"""

import json
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from errno import EEXIST
from pathlib import Path

from spillway.errors import SpillwayError
from spillway.hosts.cluster.control_log import AwayError, OvertakenError
from spillway.hosts.cluster.records import Entries, Placed, Record, decoded, encoded
from spillway.private import make_private, require_ours

SEGMENT = 512  # records between two snapshots
_NAME = re.compile("[0-9]{12}")
_FORGOTTEN_S = 3600.0  # a draft of a writer that was killed


class FolderLog:
    def __init__(self, folder: Path, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._drafts, self._snapshots = folder / "drafts", folder / "snapshots"
        self._end = 0  # at least so far
        self._made = False

    def read(self, position: int) -> Entries:
        self._make()
        try:
            entries = self._read(position)
        except OSError as error:
            raise self._away(error) from error
        self._end = max(self._end, entries.next)
        return entries

    def append(self, record: Record, expected: int | None = None) -> int:
        self._make()
        try:
            draft = self._draft(encoded(record))
            try:
                position = self._linked(draft, expected)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise self._away(error) from error
        self._end = position + 1
        if self._end % SEGMENT == 0:
            with suppress(OSError):  # the next writer that comes to a segment's end tries again
                self._compact(self._end)
        return self._end

    def close(self) -> None:
        """Nothing is held between two calls."""

    # -- reading

    def _read(self, position: int) -> Entries:
        placed: list[Placed] = []
        skipped: list[str] = []
        at, whole = position, False
        while True:
            floor = self._floor()
            if at < floor:
                lines = self._snapshot(floor)
                if lines is None:
                    continue  # a newer one has just taken its place
                placed, skipped, at, whole = [], [], floor, True
                found = [self._sorted(line, number, placed) for number, line in lines]
                skipped += [said for said in found if said]
            begin = at
            while (line := _bytes_of(self._numbered(at))) is not None:
                if said := self._sorted(line, at, placed):
                    skipped.append(said)
                at += 1
            if self._floor() <= begin:
                break
            at = begin  # what was read may have been below the floor: nothing any more
        return Entries(placed=tuple(placed), next=at, whole=whole, skipped=tuple(skipped))

    def _sorted(self, line: bytes, position: int, placed: list[Placed]) -> str | None:
        found = decoded(line, self._cluster, f"{self._folder}/{position}")
        if isinstance(found, str):
            return found
        placed.append(Placed(position=position, record=found))
        return None

    def _snapshot(self, floor: int) -> list[tuple[int, bytes]] | None:
        content = _bytes_of(self._snapshots / f"{floor:012d}")
        if content is None:
            return None
        lines = (line.partition(b" ") for line in content.splitlines())
        try:
            return [(int(number), line) for number, _, line in lines]
        except ValueError:
            raise SpillwayError(
                f"{self._snapshots}/{floor:012d} is a damaged snapshot of a control log: restore"
                " it, or end all of the cluster and remove the control log"
            ) from None

    def _floor(self) -> int:
        return max(_numbers(self._snapshots), default=0)

    # -- writing

    def _linked(self, draft: Path, expected: int | None) -> int:
        position = self._end if expected is None else expected
        while True:
            if expected is None:
                position = self._read_end(position)
            elif position > 0 and not self._numbered(position - 1).exists():
                self._require_reached(position)
            if self._links(draft, position):
                if self._floor() <= position:
                    _sync(self._folder)
                    return position
                self._numbered(position).unlink(missing_ok=True)
            if expected is not None:
                raise OvertakenError(f"{self._folder}: somebody else wrote record {position} first")

    def _links(self, draft: Path, position: int) -> bool:
        try:
            os.link(draft, self._numbered(position))
        except OSError as error:
            if error.errno != EEXIST:
                raise
            # Over NFS a link that was made may be reported as one that was there already.
            return draft.stat().st_nlink == 2 and os.path.samefile(draft, self._numbered(position))
        return True

    def _require_reached(self, position: int) -> None:
        floor = self._floor()
        if position < floor:
            raise OvertakenError(f"{self._folder}: it goes on far behind record {position}")
        if position > floor:
            raise ValueError(f"record {position} was expected behind the end of {self._folder}")

    def _read_end(self, position: int) -> int:
        position = max(position, self._floor())
        while self._numbered(position).exists():
            position += 1
        return position

    def _draft(self, line: bytes) -> Path:
        draft = self._drafts / uuid.uuid4().hex
        try:
            with draft.open("wb") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        return draft

    def _compact(self, floor: int) -> None:
        """One snapshot of all below `floor`; it takes the place of what it holds."""
        draft = self._draft(b"".join(b"%d %s\n" % line for line in self._last_lines(floor)))
        try:
            self._give(draft, self._snapshots / f"{floor:012d}")
        finally:
            draft.unlink(missing_ok=True)
        for folder in (self._snapshots, self._folder):
            for number in _numbers(folder):
                if number < floor:
                    (folder / f"{number:012d}").unlink(missing_ok=True)
        for old in self._drafts.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - old.stat().st_mtime > _FORGOTTEN_S:
                    old.unlink()

    def _give(self, draft: Path, name: Path) -> None:
        with suppress(FileExistsError):
            os.link(draft, name)
        _sync(self._snapshots)

    def _last_lines(self, floor: int) -> Iterator[tuple[int, bytes]]:
        """The last line of every key below, also of versions that this release does not know."""
        last: dict[str, tuple[int, bytes]] = {}
        before = self._floor()
        lines = self._snapshot(before) or [] if before else []
        for number in range(before, floor):
            line = _bytes_of(self._numbered(number))
            if line is None:
                raise FileNotFoundError(f"record {number}")  # another writer was faster
            lines.append((number, line))
        for number, line in lines:
            with suppress(ValueError, KeyError, TypeError):
                value = json.loads(line)
                last[value["key"]] = (number, line)
                if value["body"] is None:
                    del last[value["key"]]
        yield from sorted(last.values())

    # -- the folder

    def _numbered(self, position: int) -> Path:
        return self._folder / f"{position:012d}"

    def _make(self) -> None:
        if self._made:
            return
        try:
            require_ours(self._folder)
        except PermissionError as error:
            raise SpillwayError(f"control log {self._folder}: {error}") from None
        for folder in (self._folder, self._drafts, self._snapshots):
            try:
                status = make_private(folder).lstat()
            except OSError as error:
                raise self._away(error) from error
            if not stat.S_ISDIR(status.st_mode):
                raise SpillwayError(
                    f"control log {folder} is no folder, or a link to one: give the folder itself"
                )
            if status.st_mode & 0o077 or status.st_uid != os.getuid():
                raise SpillwayError(
                    f"control log {folder} is open to other users: it must be yours alone,"
                    f" chmod 700 {folder}"
                )
        self._made = True

    def _away(self, error: OSError) -> AwayError:
        return AwayError(f"control log {self._folder} does not answer: {error.strerror or error}")


def _numbers(folder: Path) -> list[int]:
    """Of the files in it that we have named."""
    return [int(name) for name in os.listdir(folder) if _NAME.fullmatch(name)]


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

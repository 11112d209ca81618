"""What a Spark file sink has committed, in commit order, from its `_spark_metadata` log.

The sink writes one file a batch, named by the batch, and now and then `N.compact`, which repeats
everything up to batch N. Only what stands there is committed: files without an entry were left by
a failed attempt.

Files that every reader has passed may be deleted: how many they were and what they held is noted
beside them first, so that positions stay what they are.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from spillway.errors import SpillwayError
from spillway.private import write_private

METADATA = "_spark_metadata"
PASSED = "_spillway_passed"
_VERSION = "v1"


@dataclass(frozen=True, kw_only=True)
class CommittedFile:
    path: str
    first: int  # position of its first row
    rows: int
    written_s: float  # never before that of an earlier file
    entry: int  # its place in the log

    @property
    def stop(self) -> int:
        return self.first + self.rows


@dataclass(frozen=True, kw_only=True)
class Passed:
    """What has been deleted: the first entries of the log, and the rows that they held."""

    entries: int = 0
    rows: int = 0


class SinkIndex:
    """The committed files of one directory and the positions of their rows; grows by `refresh`."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._files: list[CommittedFile] = []
        self._starts: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._entries = 0  # in the log, with the empty files that are not kept
        self._last_path = ""
        self._batch = -1
        self._passed = Passed()

    @property
    def first(self) -> int:
        """The position of the first row that is still there."""
        return self._passed.rows

    @property
    def rows(self) -> int:
        return self._files[-1].stop if self._files else self._passed.rows

    @property
    def last_file(self) -> CommittedFile | None:
        """Never deleted."""
        return self._files[-1] if self._files else None

    def refresh(self) -> None:
        """Takes in the batches that have been committed since the last time."""
        self._leave(self._read_passed())
        plain, compact = self._batches()
        newest = max(compact, default=-1)
        if newest > self._batch:
            entries = self._read(f"{newest}.compact")
            if self._entries and entries[self._entries - 1][0] != self._last_path:
                raise SpillwayError(
                    f"the sink log of {self._directory} no longer holds its first files: positions"
                    " would change; write the directory without a retention time"
                )
            self._take(entries[self._entries :])
            self._batch = newest
        while self._batch + 1 in plain:
            self._take(self._read(str(self._batch + 1)))
            self._batch += 1

    def files(self, start: int, stop: int) -> Iterator[CommittedFile]:
        """The files that hold rows of [start, stop)."""
        if stop > self.rows:
            self.refresh()
        if stop > self.rows:
            raise SpillwayError(
                f"{self._directory} holds {self.rows} committed rows: row {stop - 1} was asked for"
            )
        if start >= stop:
            return
        if start < self.first:
            raise SpillwayError(
                f"{self._directory} has no row {start} any more: what every query had read was"
                f" deleted, up to row {self.first}; `keep` of the stream says how long it stays"
            )
        index = int(np.searchsorted(self._starts, start, "right")) - 1
        while index < len(self._files) and self._files[index].first < stop:
            yield self._files[index]
            index += 1

    def delete(self, below: int, before_s: float) -> int:
        """The files whose rows are all below a position and were written before; how many."""
        self.refresh()
        gone = [f for f in self._files[:-1] if f.stop <= below and f.written_s < before_s]
        if gone:
            passed = Passed(entries=gone[-1].entry + 1, rows=gone[-1].stop)
            write_private(self._directory / PASSED, json.dumps(asdict(passed)))
            for file in gone:
                Path(file.path).unlink(missing_ok=True)
            self._leave(passed)
        return len(gone)

    def _leave(self, passed: Passed) -> None:
        if passed.rows <= self._passed.rows and passed.entries <= self._passed.entries:
            return
        self._passed = passed
        self._files = [file for file in self._files if file.first >= passed.rows]
        self._starts = np.array([file.first for file in self._files], dtype=np.int64)

    def _read_passed(self) -> Passed:
        path = self._directory / PASSED
        try:
            found = json.loads(path.read_text())
            passed = Passed(entries=found["entries"], rows=found["rows"])
            sound = all(type(n) is int and 0 <= n < 1 << 63 for n in asdict(passed).values())
        except FileNotFoundError:
            return Passed()
        except OSError as error:
            raise SpillwayError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, RecursionError):
            sound = False
        if not sound:
            raise SpillwayError(f"{path} is damaged: restore it, it says what has been deleted")
        return passed

    def _batches(self) -> tuple[set[int], set[int]]:
        """Batch numbers with a file of their own, and those of compact files."""
        try:
            names = [path.name for path in (self._directory / METADATA).iterdir()]
        except FileNotFoundError:
            return set(), set()
        plain = {int(name) for name in names if name.isdecimal()}
        ends = (name.removesuffix(".compact") for name in names if name.endswith(".compact"))
        return plain, {int(end) for end in ends if end.isdecimal()}

    def _read(self, name: str) -> list[tuple[str, float]]:
        """(path, time of writing) of each file that a log file names."""
        path = self._directory / METADATA / name
        try:
            lines = path.read_text().splitlines()
        except (OSError, ValueError) as error:
            raise SpillwayError(f"{path} cannot be read: {error}") from None
        if not lines or lines[0] != _VERSION:
            raise SpillwayError(f"{path} is not a sink log of version {_VERSION}")
        try:
            entries = [json.loads(line) for line in lines[1:] if line]
            return [
                (self._local(entry["path"]), entry["modificationTime"] / 1000.0)
                for entry in entries
                if entry["action"] == "add"
            ]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise SpillwayError(f"{path} is a damaged sink log: restore it") from None

    def _local(self, uri: str) -> str:
        """The file beside its log, also when the whole directory has been moved."""
        parts = urlparse(uri)
        if parts.scheme not in ("", "file"):
            raise SpillwayError(f"{uri} is not a local file: the files log reads local directories")
        path = Path(unquote(parts.path))
        if "=" in path.parent.name:
            raise SpillwayError(
                f"{path} belongs to a partitioned sink: write the directory without partitionBy"
            )
        return str(self._directory / path.name)

    def _take(self, entries: list[tuple[str, float]]) -> None:
        for path, written_s in entries:
            rows = 0 if self._entries < self._passed.entries else _count_rows(path)
            latest_s = self._files[-1].written_s if self._files else written_s
            if rows:
                found = CommittedFile(
                    path=path,
                    first=self.rows,
                    rows=rows,
                    written_s=max(written_s, latest_s),
                    entry=self._entries,
                )
                self._files.append(found)
            self._entries += 1
            self._last_path = path
        self._starts = np.array([file.first for file in self._files], dtype=np.int64)


@lru_cache(maxsize=64)
def sink_index(directory: str) -> SinkIndex:
    """The process's one index of a directory: rows are counted once, whoever asks."""
    return SinkIndex(directory)


def _count_rows(path: str) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError) as error:
        raise SpillwayError(
            f"{path} is committed but cannot be read as Parquet: {str(error).splitlines()[0]}"
        ) from error

"""What a Spark file sink has committed, in commit order, from its `_spark_metadata` log.

The sink writes one file a batch, named by the batch, and now and then `N.compact`, which repeats
everything up to batch N. Only what stands there is committed: files without an entry were left by
a failed attempt.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from spillway.errors import SpillwayError

METADATA = "_spark_metadata"
_VERSION = "v1"


@dataclass(frozen=True, kw_only=True)
class CommittedFile:
    path: str
    first: int  # position of its first row
    rows: int
    written_s: float  # never before that of an earlier file

    @property
    def stop(self) -> int:
        return self.first + self.rows


class SinkIndex:
    """The committed files of one directory and the positions of their rows; grows by `refresh`."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._files: list[CommittedFile] = []
        self._starts: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._entries = 0  # in the log, with the empty files that are not kept
        self._last_path = ""
        self._batch = -1

    @property
    def rows(self) -> int:
        return self._files[-1].stop if self._files else 0

    @property
    def first_file(self) -> CommittedFile | None:
        return self._files[0] if self._files else None

    def refresh(self) -> None:
        """Takes in the batches that have been committed since the last time."""
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
        index = int(np.searchsorted(self._starts, start, "right")) - 1
        while index < len(self._files) and self._files[index].first < stop:
            yield self._files[index]
            index += 1

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
            rows = _count_rows(path)
            latest_s = self._files[-1].written_s if self._files else written_s
            if rows:
                found = CommittedFile(
                    path=path, first=self.rows, rows=rows, written_s=max(written_s, latest_s)
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

"""The files of a run: a flow's folder, Spark's checkpoints, the ledgers."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, shown
from spillway.gate.ledger import Audit, BatchAudit, Life, LifeAudit, lives
from spillway.gate.offsets import Offset, decode, is_sentinel
from spillway.hosts.spark.locks import Lock, driver_of_planner, this_process
from spillway.hosts.spark.segments import parts_of
from spillway.lines import WaitingLines, line_of, lines_in, whole_lines
from spillway.logs.dead_letters import default_root
from spillway.storage import Place

_TAIL_BYTES = 1 << 22  # thousands of batches: what a start looks at, however long the ledger is
_LONGEST_LINE_BYTES = 1 << 22  # tens of thousands of partitions
_DYING_S = 10.0  # a killed driver's planner ends with its poll
_MOST_LIVES = 10_000  # in one ledger
_SAID = 200  # characters of what is wrong with a line
_NOT_AS_LOGGED = "the ledger and Spark's offset log differ"


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Checkpoints, ledgers, instances and the journal, all under one root."""

    root: Path

    def checkpoint(self, query: str) -> Path:
        return self.root / "checkpoints" / query

    def ledger(self, query: str, stream: str) -> Path:
        return self.root / "ledgers" / f"{query}.{stream}.jsonl"

    def dead_letters(self, query: str, stream: str) -> Path:
        """The root of the gate's places."""
        return Path(default_root(str(self.ledger(query, stream))))

    def instances(self, query: str) -> Path:
        return self.root / "instances" / f"{query}.jsonl"

    def lock(self) -> Lock:
        """Of the one application that may run in it."""
        return Lock(
            path=self.root / "lock",
            what=f"folder '{self.root}'",
            fix="stop that run first, or give this one another folder",
            owner=this_process(),
        )

    def require_free(self) -> None:
        """Before anything slow is begun."""
        if self.root.exists():
            lock = self.lock()
            lock.take()
            lock.release()

    def combination(self, query: str) -> Path:
        """Beside a checkpoint that was begun over partial rows: who goes on with it must know."""
        return self.root / "checkpoints" / f"{query}.combined"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def overrides(self) -> Path:
        """What was set while it ran."""
        return self.root / "overrides.json"

    @property
    def watch(self) -> Path:
        """Holds the address at which the running flow can be watched."""
        return self.root / "watch"

    @property
    def spark_log(self) -> Path:
        """What Spark and its Python processes print."""
        return self.root / "spark.log"

    @property
    def channel(self) -> Path:
        """Holds the path of the running flow's socket (socket paths must be short)."""
        return self.root / "channel"


@dataclass(frozen=True, kw_only=True)
class LoggedBatch:
    """One batch of Spark's offset log: an offset for each source, None where it had none."""

    batch_id: int
    sources: tuple[Any, ...]
    completed: bool

    def gates(self) -> list[Offset]:
        """The offsets that are ours."""
        ours = [s for s in self.sources if isinstance(s, dict) and "began_us" in s]
        return [decode(offset) for offset in ours if not is_sentinel(offset)]


def logged_batches(checkpoint: Place) -> list[LoggedBatch]:
    """What Spark has not purged yet, in the order of the batches."""
    folder, is_there = checkpoint / "offsets", False
    with suppress(OSError, ValueError):  # a name that no folder can have
        is_there = folder.is_dir()
    if not is_there:
        raise SpillwayError(
            f"'{shown(str(checkpoint))}' is no checkpoint: it has no folder 'offsets';"
            " give the checkpointLocation of the query"
        )
    names = sorted(int(f.name) for f in folder.iterdir() if f.name.isascii() and f.name.isdecimal())
    return [
        batch for batch_id in names if (batch := logged_batch(checkpoint, batch_id)) is not None
    ]


def last_batch(checkpoint: Path, *, completed: bool) -> LoggedBatch | None:
    """The last one that was planned, or that has ended."""
    folder = checkpoint / ("commits" if completed else "offsets")
    names = [int(f.name) for f in folder.glob("[0-9]*") if f.name.isdecimal()]
    return logged_batch(checkpoint, max(names)) if names else None


def logged_batch(checkpoint: Place, batch_id: int) -> LoggedBatch | None:
    """A version line, one of metadata, then one line a source. None: Spark has just purged it."""
    path = checkpoint / "offsets" / str(batch_id)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        if not lines[0].startswith("v"):
            raise SpillwayError(f"'{path}' is not an offset file of Spark: restore the checkpoint")
        sources = tuple(None if line == "-" else json.loads(line) for line in lines[2:] if line)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SpillwayError(f"'{path}' cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise SpillwayError(f"'{path}' is damaged: restore the checkpoint") from None
    completed = (checkpoint / "commits" / str(batch_id)).exists()
    return LoggedBatch(batch_id=batch_id, sources=sources, completed=completed)


def read_ledger(path: Place) -> list[Offset]:
    """All of a ledger at once; an audit looks at one line after the other."""
    return [offset for _, offset in _lines_of(path)]


def _lines_of(path: Place, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, Offset]]:
    """(where the line begins, what it says), of the lines that begin from `begin` up to `end`. A
    line that a kill has torn is the last one and is left out."""
    try:
        number = 0
        for at, file in parts_of(path, begin):
            found = lines_in(file, _LONGEST_LINE_BYTES)
            while end is None or at <= end:
                number += 1
                line, offset = _line(found, number, path)
                if offset is None:
                    break
                if at >= begin:
                    yield at, offset
                at += len(line) + 1
    except OSError as error:
        raise SpillwayError(f"'{path}' cannot be read: {error.strerror}") from error


def _line(lines: Iterator[bytes], number: int, path: Place) -> tuple[bytes, Offset | None]:
    try:
        line = next(lines, None)
        return (b"", None) if line is None else (line, decode(json.loads(line.decode())))
    except (ValueError, RecursionError, SpillwayError) as error:
        said = " ".join(ascii(str(error)).strip("'\"").split())[:_SAID]
        raise SpillwayError(
            f"line {number} of '{path}' is no offset ({said}): it is damaged"
        ) from None


def chains(path: Place, checkpoint: Place | None) -> Mapping[Life, list[Offset]]:
    """Each gate's finished batches; the checkpoint adds what the ledger has not got yet."""
    return lives(offsets_of(path, checkpoint))


def offsets_of(path: Place, checkpoint: Place | None) -> Iterator[Offset]:
    """Of the ledger's lines, then of the checkpoint: doubles and all."""
    yield from (offset for _, offset in _lines_of(path))
    yield from _completed(checkpoint)


def audits(path: Place, checkpoint: Place | None, shown: int | None = None) -> list[Audit]:
    """Every life of a gate in the ledger, with the last `shown` batches of each, or all."""
    return [audit for audit, _ in audited(path, checkpoint, shown)]


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Where in a ledger the lines of a life begin; nowhere if the checkpoint alone has them."""

    first: int
    last: int


def audited(
    path: Place, checkpoint: Place | None, shown: int | None = None
) -> list[tuple[Audit, Extent]]:
    found: dict[Life, LifeAudit] = {}
    places: dict[Life, Extent] = {}
    for at, offset in _lines_of(path):
        life = (offset.gate, offset.began_us)
        if life not in found and len(found) == _MOST_LIVES:
            raise SpillwayError(f"'{path}' holds more than {_MOST_LIVES} gates: audit their files")
        found.setdefault(life, LifeAudit(shown)).add(offset)
        places[life] = Extent(first=places[life].first if life in places else at, last=at)
    for offset in _completed(checkpoint):
        life = (offset.gate, offset.began_us)
        found.setdefault(life, LifeAudit(shown)).add(offset, _NOT_AS_LOGGED)
    nowhere = Extent(first=0, last=-1)
    return [(audit.result(), places.get(life, nowhere)) for life, audit in found.items()]


def batches_of(
    life: Life, path: Place, checkpoint: Place | None, place: Extent
) -> Iterator[tuple[Offset, BatchAudit]]:
    """Every batch of a life once, in the order of the ledger, from another look at it."""
    again = LifeAudit(shown=0)
    archived = (offset for _, offset in _lines_of(path, place.first, place.last))
    for offset in chain(archived, _completed(checkpoint)):
        if (offset.gate, offset.began_us) == life and (batch := again.add(offset)) is not None:
            yield offset, batch


def _completed(checkpoint: Place | None) -> Iterator[Offset]:
    if checkpoint is None:
        return
    for batch in logged_batches(checkpoint):
        if batch.completed:
            yield from batch.gates()


class Archive:
    """Appends the offsets of finished batches, each once, in order; nothing without a path.

    A line that a kill has torn is written again, because Spark shows the same offset again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path or Path(os.devnull)
        self._lock = None if path is None else _lock_of_ledger(path)
        self._lines = WaitingLines(self._path, "ledger")
        self._last: dict[Life, int] = {}
        self._tail_is_read = False
        self._is_long = False  # more than its tail, as it was found

    def hold(self, wait_s: float = _DYING_S) -> None:
        """Before a batch is planned or run again: no other driver may write here. Held for as long
        as this process lives."""
        if self._lock is not None:
            self._lock.take(wait_s)

    def add(self, offset: dict[str, Any]) -> None:
        """`offset` is an encoded offset whose batch Spark has completed."""
        life, seq = (offset["gate"], offset["began_us"]), offset["seq"]
        if self._lock is not None and seq > self._recall(life):
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
            with suppress(ValueError, RecursionError, SpillwayError):  # damaged: the audit says so
                offset = decode(json.loads(line))
                life, seq = (offset.gate, offset.began_us), offset.seq
                self._last[life] = max(seq, self._last.get(life, -1))


def _lock_of_ledger(path: Path) -> Lock:
    return Lock(
        path=path.with_name(f".{path.name}.lock"),
        what=f"ledger '{path}'",
        fix="stop that driver first, or give this one a checkpoint and a ledger of its own",
        owner=driver_of_planner(),
        shared=True,
    )

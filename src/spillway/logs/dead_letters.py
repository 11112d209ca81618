"""Where malformed records go: counted exactly, sampled, bounded, and never in a query's way.

A gate's life (its name, and when its checkpoint began) has a folder of its own, because a position
means another record in a topic or a checkpoint that was made anew. In there `count-P.state` and
`samples-P.jsonl` belong to partition P. The first line of the state has the totals. Behind it are
the positions that never count again, as intervals in binary: a task may be tried twice, a batch be
replayed after a crash and cut in another way.
"""

import base64
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

from spillway.lines import append, line_of, whole_lines
from spillway.logs.intervals import NOWHERE, Intervals, holds, size, union
from spillway.logs.saying import say_once
from spillway.private import make_private, open_private
from spillway.uris import is_remote

SAMPLES_PER_READ = 10
SAMPLE_BYTES = 4096  # of one record
SAMPLES_FILE_BYTES = 4_000_000  # of a partition; later samples are left out, counts go on
MOST_INTERVALS = 20_000  # of a partition and kind: beyond that the lowest are forgotten

KINDS = ("malformed", "lost")
_DAMAGED = (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)
_WRITE = os.O_WRONLY | os.O_CREAT
_LONGEST_NAME = 200  # of a folder: file systems take 255 bytes


@dataclass(frozen=True, kw_only=True)
class Malformed:
    """One record that could not be read."""

    position: int
    reason: str
    raw: bytes | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """`positions` count. Those of `judged` never count again: all that a read went through, where
    what it left out is nobody else's to find."""

    positions: Intervals = field(default_factory=NOWHERE.copy)
    judged: Intervals = field(default_factory=NOWHERE.copy)


@dataclass(frozen=True, kw_only=True)
class DeadLetters:
    """The dead-letter place of a gate's life; without a directory records are only left out."""

    directory: str | None

    def record(
        self,
        partition: int,
        *,
        malformed: Found | None = None,
        lost: Found | None = None,
        samples: Sequence[Malformed] = (),
    ) -> None:
        """What one read found malformed, and what had gone (truncated) before it came."""
        found = {"malformed": malformed or Found(), "lost": lost or Found()}
        if self.directory is None or not any(len(kind.positions) for kind in found.values()):
            return
        try:
            folder = make_private(Path(self.directory))
            with _locked(folder / f"lock-{partition}"):
                _record(folder, partition, found, samples)
        except OSError as error:  # a full disk must not end a query
            say_once(f"dead letters cannot be written ({error}); the query goes on without them")


def default_root(ledger: str | None) -> str:
    """Beside the gate's ledger; without a ledger in a private folder of the machine."""
    beside = Path(ledger).parent if ledger and not is_remote(ledger) else private_folder_of_user()
    return str(beside / "dead_letters")


def place_of(root: str | Path, gate: str, began_us: int) -> str:
    """The folder of a gate's life. A name is a name: no character of it makes a path."""
    name = quote(gate, safe="").replace(".", "%2E")
    if len(name) > _LONGEST_NAME:
        name = name[:_LONGEST_NAME] + hashlib.sha256(gate.encode()).hexdigest()[:16]
    return str(Path(root) / name / str(began_us))


def private_folder_of_user() -> Path:
    return Path(tempfile.gettempdir()) / f"spillway-{os.getuid()}"


def dead_letter_totals(directory: str | Path) -> Mapping[str, int]:
    """How many records were malformed, and how many vanished before they were read."""
    totals = dict.fromkeys(KINDS, 0)
    for path in Path(directory).glob("count-*.state"):
        with suppress(OSError, *_DAMAGED):
            found = json.loads(next(whole_lines(path), b""))
            totals = {kind: totals[kind] + int(found[kind]) for kind in KINDS}
    return totals


def _record(
    folder: Path, partition: int, found: Mapping[str, Found], samples: Sequence[Malformed]
) -> None:
    path = folder / f"count-{partition}.state"
    first = not path.exists()
    totals, before = _state(path)
    after = {}
    for kind, known in before.items():
        both = union((known, found[kind].positions))
        totals[kind] += size(both) - size(known)
        after[kind] = union((both, found[kind].judged))[-MOST_INTERVALS:]
    line = line_of(totals | {"intervals": [len(known) for known in after.values()]})
    _replace(path, b"\n".join((line, *(known.tobytes() for known in after.values()))))
    fresh = [s for s in samples[:SAMPLES_PER_READ] if not holds(before["malformed"], s.position)]
    _sample(folder / f"samples-{partition}.jsonl", partition, fresh)
    if first:
        counts = f"{totals['malformed']} malformed and {totals['lost']} lost records"
        say_once(f"partition {partition} has {counts}: left out, counted and sampled in {folder}")


def _state(path: Path) -> tuple[dict[str, int], dict[str, Intervals]]:
    """Totals, and the positions that never count again."""
    totals, known = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, NOWHERE)
    try:
        line, _, rest = path.read_bytes().partition(b"\n")
        found = json.loads(line)
        for kind, rows in zip(KINDS, found["intervals"], strict=True):
            totals[kind] = int(found[kind])
            known[kind] = np.frombuffer(rest, dtype=np.int64, count=2 * rows).reshape(rows, 2)
            rest = rest[16 * rows + 1 :]
    except FileNotFoundError:
        pass
    except _DAMAGED:  # by a crash of the machine: nothing here is worth waiting for a disk
        say_once(f"{path} is damaged: its counts begin anew")
        return dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, NOWHERE)
    return totals, known


def _replace(path: Path, data: bytes) -> None:
    """In one step: a kill leaves the old counts or the new ones."""
    draft = path.with_suffix(".new")
    with os.fdopen(open_private(draft, _WRITE | os.O_TRUNC), "wb") as file:
        file.write(data)
    os.replace(draft, path)


def _sample(path: Path, partition: int, samples: Sequence[Malformed]) -> None:
    if not samples or (path.exists() and path.stat().st_size > SAMPLES_FILE_BYTES):
        return
    append(path, *(line_of(_line(partition, sample)) for sample in samples))


def _line(partition: int, sample: Malformed) -> dict[str, object]:
    line: dict[str, object] = {
        "partition": partition,
        "position": sample.position,
        "reason": sample.reason,
    }
    raw = None if sample.raw is None else sample.raw[:SAMPLE_BYTES]
    try:
        return line | {"value": raw.decode() if raw is not None else None}
    except UnicodeDecodeError:
        return line | {"value_base64": base64.b64encode(raw or b"").decode()}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time among the workers of a machine."""
    with os.fdopen(open_private(path, _WRITE), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Where malformed records go: counted exactly, sampled, bounded, and never in a query's way.

For each partition of a log the directory holds `count-P.json` and `samples-P.jsonl`. What is
counted are positions, so each counts once however often it is read: a task that is tried twice, a
batch that is replayed after a crash and cut in another way. The latest positions are remembered
for that; older ones can no longer be read again.
"""

import base64
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spillway.lines import append, line_of

SAMPLES_PER_READ = 10
SAMPLE_BYTES = 4096  # of one record
SAMPLES_FILE_BYTES = 4_000_000  # of a partition; later samples are left out, counts go on
RECENT_RANGES = 50_000  # of positions that stand side by side

Positions = npt.NDArray[np.int64]
NOWHERE: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Malformed:
    """One record that could not be read."""

    position: int
    reason: str
    raw: bytes | None


@dataclass(frozen=True, kw_only=True)
class DeadLetters:
    """The dead-letter place of a log; without a directory records are only left out."""

    directory: str | None

    def record(
        self,
        partition: int,
        malformed: Positions,
        samples: Sequence[Malformed] = (),
        lost: Positions = NOWHERE,
    ) -> None:
        """Positions of the malformed and the lost (truncated) records of one read."""
        if self.directory is None or not (len(malformed) or len(lost)):
            return
        try:
            folder = Path(self.directory)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(folder / f"lock-{partition}"):
                _record(folder, partition, malformed, samples, lost)
        except OSError as error:  # a full disk must not end a query
            _say(f"dead letters cannot be written ({error}); the query goes on without them")


def default_place(gate: str, ledger: str | None) -> str:
    """Beside the gate's ledger; without a ledger in the temporary folder of the machine."""
    if ledger is not None:
        return str(Path(ledger).parent / "dead_letters" / gate.replace("/", "."))
    return str(Path(tempfile.gettempdir()) / f"spillway-dead-letters-{os.getuid()}" / gate)


def dead_letter_totals(directory: str | Path) -> Mapping[str, int]:
    """How many records were malformed, and how many vanished before they were read."""
    states = [_state(path) for path in Path(directory).glob("count-*.json")]
    return {kind: sum(state[kind] for state in states) for kind in ("malformed", "lost")}


def _record(
    folder: Path,
    partition: int,
    malformed: Positions,
    samples: Sequence[Malformed],
    lost: Positions,
) -> None:
    path = folder / f"count-{partition}.json"
    first, state = not path.exists(), _state(path)
    new = _add(state, "malformed", malformed)
    _add(state, "lost", lost)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(state))
    os.replace(draft, path)
    fresh = [sample for sample in samples[:SAMPLES_PER_READ] if sample.position in new]
    _sample(folder / f"samples-{partition}.jsonl", partition, fresh)
    if first:
        counts = f"{state['malformed']} malformed and {state['lost']} lost records"
        _say(f"partition {partition} has {counts}: left out, counted and sampled in {folder}")


def _state(path: Path) -> dict[str, Any]:
    with suppress(FileNotFoundError, ValueError):
        state: dict[str, Any] = json.loads(path.read_text())
        return state
    return {"malformed": 0, "lost": 0, "recent": {}, "settled": {}}


def _add(state: dict[str, Any], kind: str, positions: Positions) -> set[int]:
    """Counts positions that are new, and hands them back. What is settled was counted before."""
    settled = state["settled"].get(kind, 0)
    known = _expanded(state["recent"].get(kind, []))
    new = np.setdiff1d(positions[positions >= settled], known)
    ranges = _ranges(np.union1d(known, new))
    if len(ranges) > RECENT_RANGES:
        state["settled"][kind] = ranges[-RECENT_RANGES - 1][1]
    state["recent"][kind] = ranges[-RECENT_RANGES:]
    state[kind] += len(new)
    return set(new.tolist())


def _ranges(positions: Positions) -> list[list[int]]:
    """Ascending positions as [first, end) pairs."""
    runs = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)
    return [[int(run[0]), int(run[-1]) + 1] for run in runs if len(run)]


def _expanded(ranges: list[list[int]]) -> Positions:
    return np.concatenate([NOWHERE, *(np.arange(first, end) for first, end in ranges)])


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


def _say(text: str) -> None:
    """Workers have no other way to the user; Spark passes their standard error on."""
    if text not in _said:
        _said.add(text)
        print(f"spillway: {text}", file=sys.stderr, flush=True)


_said: set[str] = set()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time among the workers of a machine."""
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

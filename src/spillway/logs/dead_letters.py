"""Where malformed records go: counted exactly, sampled, bounded, and never in a query's way.

For each partition of a log the directory holds `count-P.json`, the total and the latest spans with
malformed records, and `samples-P.jsonl`. A span that is read again (a task that is tried twice, a
batch replayed after a crash) replaces its own count, so the total stays exact; its samples may
stand there twice.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.ports import Span

SAMPLES_PER_SPAN = 10
SAMPLE_BYTES = 4096  # of one record
SAMPLES_FILE_BYTES = 4_000_000  # of a partition; later samples are left out, counts go on
RECENT_SPANS = 1000  # only the newest batches can be read again


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

    def record(self, span: Span, samples: list[Malformed], count: int, lost: int = 0) -> None:
        """Malformed and lost (truncated) records of one read of a span."""
        if self.directory is None or not (count or lost):
            return
        with suppress(OSError):  # a full disk must not end a query
            folder = Path(self.directory)
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / f"lock-{span.partition}"):
                _count(folder / f"count-{span.partition}.json", span, count, lost)
                _sample(folder / f"samples-{span.partition}.jsonl", span, samples)


def dead_letter_totals(directory: str | Path) -> Mapping[str, int]:
    """How many records were malformed, and how many vanished before they were read."""
    totals = {"malformed": 0, "lost": 0}
    for path in Path(directory).glob("count-*.json"):
        state = json.loads(path.read_text())
        totals["malformed"] += state["malformed"]
        totals["lost"] += state["lost"]
    return totals


def _count(path: Path, span: Span, count: int, lost: int) -> None:
    state: dict[str, Any] = {"malformed": 0, "lost": 0, "recent": []}
    with suppress(FileNotFoundError, ValueError):
        state = json.loads(path.read_text())
    key = [span.start, span.stop]
    before = [entry for entry in state["recent"] if entry[:2] == key]
    recent = [entry for entry in state["recent"] if entry[:2] != key]
    state["malformed"] += count - sum(entry[2] for entry in before)
    state["lost"] += lost - sum(entry[3] for entry in before)
    state["recent"] = [*recent, [*key, count, lost]][-RECENT_SPANS:]
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state))
    os.replace(new, path)


def _sample(path: Path, span: Span, samples: list[Malformed]) -> None:
    if path.exists() and path.stat().st_size > SAMPLES_FILE_BYTES:
        return
    with path.open("a", encoding="utf-8") as file:
        for sample in samples[:SAMPLES_PER_SPAN]:
            file.write(json.dumps(_line(span, sample)) + "\n")


def _line(span: Span, sample: Malformed) -> dict[str, object]:
    line: dict[str, object] = {
        "partition": span.partition,
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
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

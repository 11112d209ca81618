"""A checkpoint between Spark's own Kafka source and the gate: what it holds, and the way back.

The way here needs no file changed: a gate understands what Spark's own source has logged. The way
back does, because that source cannot read an offset of a gate: the last two entries of the offset
log are written anew, and what stood there is kept beside them. State, watermark and the number of
the batch are the query's own and stay as they are.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.offsets import decode, is_sentinel
from spillway.hosts.spark.files import LoggedBatch, logged_batches
from spillway.hosts.spark.planner.starts import is_sparks, starting_offsets
from spillway.logs.topics import order_of
from spillway.storage import Place, Remote

KEPT = "offsets-of-the-gate"  # in the checkpoint: what stood in the entries that were written anew
_CHECKSUMS = (".{}.crc", "{}.crc")  # of Hadoop's local files, and of Spark's own
Positions = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One stream of the query, as the last entry of the log has it."""

    kind: str  # "gate", "kafka" or "other"
    at: Positions  # by topic and partition; a gate of something else than Kafka has none

    def __str__(self) -> str:
        known = {"gate": "a gate", "kafka": "Spark's own Kafka source"}
        if self.kind not in known:
            return "neither a gate nor Spark's own Kafka source"
        topics = "; ".join(
            f"{topic} {', '.join(f'{partition} at {at}' for partition, at in places.items())}"
            for topic, places in self.at.items()
        )
        return f"{known[self.kind]}, {topics or 'not of Kafka'}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A checkpoint as it stands."""

    last: LoggedBatch
    sources: tuple[Source, ...]
    operators: Mapping[str, int]  # state by operator: how many partitions
    watermark_ms: int


def found_in(checkpoint: Place) -> Found:
    logged = logged_batches(checkpoint)
    if not logged:
        raise SpillwayError(f"'{checkpoint}' has no batch: nothing has been read yet")
    return Found(
        last=logged[-1],
        sources=tuple(_source(each) for each in logged[-1].sources),
        operators=_operators(checkpoint),
        watermark_ms=_watermark_ms(checkpoint, logged[-1].batch_id),
    )


def require_returnable(found: Found, checkpoint: Place) -> None:
    gates = [source for source in found.sources if source.kind == "gate"]
    if not gates:
        raise SpillwayError(f"'{checkpoint}' is of no gate: there is nothing to give back")
    if not all(source.at for source in gates):
        raise SpillwayError(
            f"'{checkpoint}' is of a gate that reads something else than Kafka, or has read"
            " nothing yet: Spark's own Kafka source cannot go on there"
        )
    if not found.last.completed:
        raise SpillwayError(
            f"batch {found.last.batch_id} of '{checkpoint}' was begun and not completed, and"
            " Spark's own source cannot run it again without what the gate dropped: start the query"
            " once more with the gate, and stop it while it waits"
        )


def give_back(checkpoint: Place) -> tuple[int, ...]:
    """The entries that were written anew; raises where Spark's own source could not go on."""
    require_returnable(found_in(checkpoint), checkpoint)
    numbers = [batch.batch_id for batch in logged_batches(checkpoint)[-2:]]
    for number in numbers:
        before = (checkpoint / "offsets" / str(number)).read_bytes()
        _write(checkpoint / KEPT, str(number), before)
        _write(checkpoint / "offsets", str(number), _returned(before))
    newest = logged_batches(checkpoint)[-1].batch_id
    if newest != numbers[-1]:
        raise SpillwayError(
            f"'{checkpoint}' got batch {newest} meanwhile: the query runs; stop it, copy the files"
            f" of its folder {KEPT} back into offsets, and begin anew"
        )
    return tuple(numbers)


def _source(logged: Any) -> Source:
    if isinstance(logged, dict) and "seq" in logged:
        of_kafka = not is_sentinel(logged) and bool(order_of(decode(logged).pinned))
        return Source(kind="gate", at=starting_offsets(logged, "") if of_kafka else {})
    if isinstance(logged, dict) and is_sparks(logged):
        return Source(kind="kafka", at=logged)
    return Source(kind="other", at={})


def _returned(entry: bytes) -> bytes:
    """A version, metadata, then a line for each source."""
    lines = entry.decode().split("\n")
    return "\n".join([*lines[:2], *map(_line, lines[2:])]).encode()


def _line(line: str) -> str:
    value = json.loads(line) if line.startswith("{") else None
    if not isinstance(value, dict) or "seq" not in value or is_sentinel(value):
        return line
    return json.dumps(starting_offsets(value, ""), separators=(",", ":"))


def _write(folder: Place, name: str, data: bytes) -> None:
    """Whole or not at all, and without the checksum of what stood there."""
    if isinstance(folder, Remote):
        (folder / name).write_bytes(data)
        return
    folder.mkdir(exist_ok=True)
    new = folder / f".{name}.new"
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    for checksum in _CHECKSUMS:
        (folder / checksum.format(name)).unlink(missing_ok=True)
    os.replace(new, folder / name)


def _operators(checkpoint: Place) -> Mapping[str, int]:
    folder = checkpoint / "state"
    if not folder.is_dir():
        return {}
    found = [operator for operator in folder.iterdir() if operator.name.isdecimal()]
    return {
        operator.name: sum(part.name.isdecimal() for part in operator.iterdir())
        for operator in sorted(found, key=lambda each: int(each.name))
    }


def _watermark_ms(checkpoint: Place, batch_id: int) -> int:
    lines = (checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").split("\n")
    with suppress(ValueError, IndexError, KeyError, TypeError):
        return int(json.loads(lines[1])["batchWatermarkMs"])
    return 0


def as_json(found: Found) -> dict[str, Any]:
    return {
        "batch": found.last.batch_id,
        "completed": found.last.completed,
        "sources": [{"kind": source.kind, "at": source.at} for source in found.sources],
        "state": dict(found.operators),
        "watermark_ms": found.watermark_ms,
    }

"""Where a node's files are: checkpoints are shared, ledgers and journal are its own.

A checkpoint belongs to a generation of a query, wherever it runs. A ledger belongs to one node and
one epoch, so that a node that froze and its successor never write to the same file; an audit reads
all of them together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from spillway.gate.ledger import Audit, Life, LifeAudit
from spillway.gate.offsets import Offset
from spillway.hosts.spark.files import Folder, logged_batches, read_ledger


@dataclass(frozen=True, kw_only=True)
class Given:
    """Of the assignment that a query runs by."""

    name: str
    generation: int
    epoch: int


@dataclass(frozen=True, kw_only=True)
class NodeFolder(Folder):
    shared: Path
    given: dict[str, Given] = field(default_factory=dict)  # by run

    def checkpoint(self, query: str) -> Path:
        name, _, generation = query.partition("@")
        return checkpoint_of(self.shared, name, int(generation or 1))

    def ledger(self, query: str, stream: str) -> Path:
        name = f"{query}.{stream}.e{self.given[query].epoch}.jsonl"
        return self.root / "ledgers" / name


def root_of(shared: Path, node: str, life: str) -> Path:
    """Of one process: another one may have gone by the name, and may still hold its folder."""
    return shared / "nodes" / f"{node}.{life}"


def checkpoint_of(shared: Path, query: str, generation: int) -> Path:
    return shared / "checkpoints" / query / f"g{generation}"


def ledgers_of(shared: Path, run: str, stream: str) -> list[Path]:
    """Of all nodes and epochs."""
    return sorted((shared / "nodes").glob(f"*/ledgers/{run}.{stream}.e*.jsonl"))


def audits_of(shared: Path, run: str, stream: str) -> list[Audit]:
    """What all nodes together have done to a stream for a query's checkpoint: as one ledger."""
    found: dict[Life, LifeAudit] = {}
    for offset in _archived(shared, run, stream):
        found.setdefault((offset.gate, offset.began_us), LifeAudit()).add(offset)
    for offset in _completed(shared, run, stream):
        life = (offset.gate, offset.began_us)
        found.setdefault(life, LifeAudit()).add(offset, "ledgers and Spark's offset log differ")
    return [audit.result() for audit in found.values()]


def overlap_of(shared: Path, before: str, after: str, stream: str) -> int:
    """How many tuples a query's checkpoint has read that the one before it has read as well."""
    read: dict[int, int] = {}
    begins: dict[int, int] = {}
    reached: dict[int, int] = {}
    for offset in chain(_archived(shared, before, stream), _completed(shared, before, stream)):
        for s in offset.stretches:
            read[s.partition] = max(s.stop, read.get(s.partition, 0))
    for offset in chain(_archived(shared, after, stream), _completed(shared, after, stream)):
        for s in offset.stretches:
            begins[s.partition] = min(s.start, begins.get(s.partition, s.start))
            reached[s.partition] = max(s.stop, reached.get(s.partition, 0))
    both = {p: min(read[p], reached[p]) - begins[p] for p in begins if p in read}
    return sum(max(0, tuples) for tuples in both.values())


def _archived(shared: Path, run: str, stream: str) -> Iterator[Offset]:
    return chain.from_iterable(read_ledger(path) for path in ledgers_of(shared, run, stream))


def _completed(shared: Path, run: str, stream: str) -> Iterator[Offset]:
    name, _, generation = run.partition("@")
    for batch in logged_batches(checkpoint_of(shared, name, int(generation or 1))):
        if batch.completed:
            yield from (offset for offset in batch.gates() if offset.gate == f"{run}/{stream}")


def by_stream(shared: Path) -> Mapping[tuple[str, str], int]:
    """(run, stream) -> how many ledgers there are of it."""
    found: dict[tuple[str, str], int] = {}
    for path in (shared / "nodes").glob("*/ledgers/*.e*.jsonl"):
        query, stream, _, _ = path.name.rsplit(".", 3)
        found[query, stream] = found.get((query, stream), 0) + 1
    return found

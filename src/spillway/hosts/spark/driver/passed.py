"""Derived streams do not grow for ever: rows that every query has read are deleted after a while.

What a query may still ask for is known from its checkpoint: the batch that was logged last may run
again after a crash, and no batch before it can. A query that has not begun to read has passed
nothing. The while is for `spillway backfill` and `spillway ledger --flow`, which read again.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.files import Folder, last_batch
from spillway.logs.sink_index import SinkIndex
from spillway.model import parse_duration_s

LOOK_S = 30.0


@dataclass(frozen=True, kw_only=True)
class _Stream:
    name: str
    index: SinkIndex
    keep_s: float


class PassedRows:
    """Looks now and then; a disk or a checkpoint that refuses is told once and tried again."""

    def __init__(self, flow: Flow, folder: Folder) -> None:
        self._folder = folder
        self._streams = [
            _Stream(
                name=name,
                index=SinkIndex(str(stream.options["path"])),
                keep_s=parse_duration_s(stream.keep),
            )
            for name, stream in flow.streams.items()
            if stream.keep is not None
        ]
        self._looked_s = -float("inf")
        self._told: set[str] = set()

    def look(self, reads: Mapping[str, Sequence[str]], now_s: float) -> None:
        """`reads` says which streams every query reads."""
        if abs(now_s - self._looked_s) < LOOK_S:
            return
        self._looked_s = now_s
        for stream in self._streams:
            readers = [query for query, streams in reads.items() if stream.name in streams]
            try:
                passed = [self._passed(query, stream.name) for query in readers]
                stream.index.delete(min(passed, default=0), now_s - stream.keep_s)
            except (SpillwayError, OSError) as error:
                self._tell(stream.name, str(error))

    def _passed(self, query: str, stream: str) -> int:
        """The first row that the query's next batch, or its last one run again, may read."""
        batch = last_batch(self._folder.checkpoint(query), completed=False)
        offsets = batch.gates() if batch is not None else []
        own = [offset for offset in offsets if offset.gate == f"{query}/{stream}"]
        return min((s.start for offset in own for s in offset.stretches), default=0)

    def _tell(self, stream: str, why: str) -> None:
        if stream not in self._told:
            print(f"spillway: rows of '{stream}' cannot be deleted: {why}", file=sys.stderr)
        self._told.add(stream)

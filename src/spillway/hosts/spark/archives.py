"""The archive of a gate's finished batches, where its options say."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from spillway.errors import SpillwayError
from spillway.gate.offsets import is_sentinel
from spillway.hosts.spark.files import Archive, logged_batches
from spillway.hosts.spark.segments import SegmentArchive
from spillway.storage import Remote, place_at


def archive_of(ledger: str | None, checkpoint: str | None) -> Archive | SegmentArchive:
    place = None if ledger is None else place_at(ledger)
    if not isinstance(place, Remote):
        return Archive(place)
    return SegmentArchive(place, lambda: _logged(checkpoint))


def _logged(checkpoint: str | None) -> Iterator[dict[str, Any]]:
    """What Spark has of batches that are done."""
    if checkpoint is None:
        return
    with suppress(SpillwayError, OSError):  # a first start has no checkpoint
        for batch in logged_batches(place_at(checkpoint)):
            for source in batch.sources if batch.completed else ():
                if isinstance(source, dict) and "began_us" in source and not is_sentinel(source):
                    yield source

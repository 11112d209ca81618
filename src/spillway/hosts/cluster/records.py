"""What stands in a control log: records, of which the last one of a key holds.

A record of a version that this release does not know is reported and skipped, so that nodes of two
releases can share a log; a record of another cluster means that two clusters share one by mistake.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spillway.errors import SpillwayError

VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    cluster: str
    key: str
    epoch: int  # of the key: its writer counts it up
    writer: str
    body: Mapping[str, Any] | None  # None: the key is gone


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    position: int
    record: Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Entries:
    """What a log holds from a position on."""

    placed: tuple[Placed, ...]
    next: int  # where to read on
    whole: bool = False  # older ones were compacted: a key that is not among these is gone
    skipped: tuple[str, ...] = ()  # what could not be understood, in words


def encoded(record: Record) -> bytes:
    value = {
        "v": VERSION,
        "cluster": record.cluster,
        "key": record.key,
        "epoch": record.epoch,
        "writer": record.writer,
        "body": record.body,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decoded(line: bytes, cluster: str, where: str) -> Record | str:
    """The record, or why it is skipped. Raises where the log is another cluster's."""
    try:
        value = json.loads(line)
        version, owner = value["v"], value["cluster"]
        if owner != cluster:
            raise SpillwayError(
                f"{where} is the control log of cluster '{owner}', not of '{cluster}': give each"
                " cluster a control log of its own"
            )
        if version != VERSION:
            writer = value.get("writer")
            return f"{where}: version {version} of '{writer}', known is {VERSION}"
        record = Record(
            cluster=owner,
            key=value["key"],
            epoch=value["epoch"],
            writer=value["writer"],
            body=value["body"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"{where}: not a record of a control log"
    well_formed = isinstance(record.key, str) and isinstance(record.epoch, int)
    well_formed &= record.body is None or isinstance(record.body, dict)
    return record if well_formed else f"{where}: not a record of a control log"

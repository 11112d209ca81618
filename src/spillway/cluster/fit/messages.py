"""What travels: a table in full once, then only the rows that changed.

A node sends its parent an update when its published table differs from the last one it sent; when
it does not, nothing is sent and nothing above it is computed. With a maximum error the grid
depends on selectivities alone, so a changed cost moves only the rows along the capacity limit; with
a table size the spreads follow the capacity, and most rows change. Whichever is shorter goes out.

Layout, little endian: version, base version (0: full), inputs, half spaces or NO_CHANGE, removed
rows, added rows (6 x uint32), error (float64), values (float64 per input), half spaces (float64),
removed positions (uint32), added rows (rates and score, float64).
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from spillway.cluster.fit.build import build_table, peak_rates
from spillway.cluster.fit.decide import Rates
from spillway.cluster.fit.spread import Resolution
from spillway.cluster.fit.table import FeasibleInputTable, Floats, Indices, PublishedTable
from spillway.cluster.fit.topology import OUTSIDE, Topology
from spillway.errors import SpillwayError

_HEAD = struct.Struct("<6Id")
_NO_CHANGE = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class TableUpdate:
    """From one version of a published table to the next. `base` 0: from nothing."""

    version: int
    base: int
    removed: Indices  # positions in the base
    added: Floats  # rows x (inputs + score)
    limits: Floats | None  # None: as before
    values: Floats
    error: float

    def encode(self) -> bytes:
        limits = b"" if self.limits is None else self.limits.astype("<f8").tobytes()
        spaces = _NO_CHANGE if self.limits is None else len(self.limits)
        inputs = self.added.shape[1] - 1
        counts = (self.version, self.base, inputs, spaces, self.removed.size, len(self.added))
        return b"".join(
            (
                _HEAD.pack(*counts, self.error),
                self.values.astype("<f8").tobytes(),
                limits,
                self.removed.astype("<u4").tobytes(),
                self.added.astype("<f8").tobytes(),
            )
        )

    @classmethod
    def decode(cls, message: bytes) -> "TableUpdate":
        version, base, inputs, spaces, removed, added, error = _HEAD.unpack_from(message)
        values = np.frombuffer(message, "<f8", inputs, _HEAD.size)
        at = _HEAD.size + values.nbytes
        limits = None
        if spaces != _NO_CHANGE:
            limits = np.frombuffer(message, "<f8", spaces * inputs, at).reshape(spaces, inputs)
            at += limits.nbytes
        positions = np.frombuffer(message, "<u4", removed, at)
        rows = np.frombuffer(message, "<f8", added * (inputs + 1), at + positions.nbytes)
        return cls(
            version=version,
            base=base,
            removed=positions.astype(np.intp),
            added=rows.reshape(added, inputs + 1),
            limits=limits,
            values=values,
            error=error,
        )


def full_update(table: PublishedTable, version: int) -> TableUpdate:
    return TableUpdate(
        version=version,
        base=0,
        removed=np.zeros(0, dtype=np.intp),
        added=_rows(table),
        limits=table.limits,
        values=table.values,
        error=table.error,
    )


def update_between(old: PublishedTable, new: PublishedTable, version: int) -> TableUpdate:
    """The shorter of the changed rows and the whole table. `version` is that of the new one."""
    before, after = _rows(old), _rows(new)
    had = {row.tobytes() for row in before}
    has = {row.tobytes() for row in after}
    changed = TableUpdate(
        version=version,
        base=version - 1,
        removed=np.array([k for k, row in enumerate(before) if row.tobytes() not in has], np.intp),
        added=np.array([row for row in after if row.tobytes() not in had]).reshape(
            -1, after.shape[1]
        ),
        limits=None if np.array_equal(old.limits, new.limits) else new.limits,
        values=new.values,
        error=new.error,
    )
    whole = full_update(new, version)
    return min(changed, whole, key=lambda update: len(update.encode()))


def apply_update(
    inputs: tuple[str, ...], base: PublishedTable | None, version: int, update: TableUpdate
) -> PublishedTable:
    """The receiver's side. A missed version is refused: ask for the table in full."""
    rows, limits = update.added, update.limits
    if update.base:
        if base is None or version != update.base:
            raise SpillwayError(
                f"table update starts from version {update.base}: the receiver has {version};"
                " ask the child for its table in full"
            )
        rows = np.concatenate((np.delete(_rows(base), update.removed, axis=0), rows))
        limits = base.limits if limits is None else limits
    if limits is None:
        raise SpillwayError("table update has no limits: a full table must carry them")
    rows = rows[np.lexsort((*rows[:, :-1].T, -rows[:, -1]))]
    return PublishedTable(
        inputs=inputs,
        rates=np.ascontiguousarray(rows[:, :-1].T),
        scores=rows[:, -1].copy(),
        limits=limits,
        values=update.values,
        error=update.error,
    )


def _rows(table: PublishedTable) -> Floats:
    return np.ascontiguousarray(np.vstack((table.rates, table.scores)).T)


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """New tables after a change, what travelled for it, and over how many hops."""

    tables: Mapping[str, FeasibleInputTable]
    rebuilt: tuple[str, ...]
    message_bytes: Mapping[str, int]  # sender -> bytes
    hops: int


def refresh(
    topology: Topology,
    tables: Mapping[str, FeasibleInputTable],
    changed: Iterable[str],
    resolution: Resolution,
    *,
    peaks: Rates | None = None,
) -> Refresh:
    """Rebuild the changed nodes and, upwards, only those whose child now publishes otherwise."""
    fresh = dict(tables)
    stale = dict.fromkeys(changed, 0)  # node -> hops from the change
    highest = peak_rates(topology, peaks)
    sent: dict[str, int] = {}
    rebuilt: list[str] = []
    for node in reversed(topology.order):
        if node.name not in stale:
            continue
        rebuilt.append(node.name)
        table = build_table(node, fresh, resolution, peaks=highest[node.name])
        if table.same_as(tables[node.name]):
            continue
        for parent in topology.parents[node.name]:
            if parent != OUTSIDE:
                stale[parent] = max(stale.get(parent, 0), stale[node.name] + 1)
                update = update_between(tables[node.name], table, version=2)
                sent[node.name] = len(update.encode())
        fresh[node.name] = table
    hops = max((stale[name] for name in rebuilt), default=0)
    return Refresh(tables=fresh, rebuilt=tuple(rebuilt), message_bytes=sent, hops=hops)

"""The way into the network: arrivals, the gate of each class, and the input buffers."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import compress
from math import inf

import numpy as np

from spillway.errors import SpillwayError, unknown_name
from spillway.gate.sampling import BLOCK, PPM, UniformRule, keep_mask
from spillway.model import Backlog, Target
from spillway_lab.engine.network import Network
from spillway_lab.engine.state import Counts
from spillway_lab.engine.statistics import Floats, Ints, statistic_of


class Input:
    """One stream in front of the network: what arrived, what was shed, what waits."""

    def __init__(self, name: str, class_name: str, times_s: Floats, ids: Ints, partition: int):
        self.name = name
        self.class_name = class_name
        self.gate = class_name  # whose rule holds; differs where a class sheds in parts
        self.load_s = 0.0  # offered in the last period
        self.times_s = times_s
        self.ids = ids
        self.partition = partition
        self.queues: list[list[int]] = []  # of the operators that read it
        self.readers_mask = 0
        self.offered = 0
        self.shed = 0
        self.buffered = False  # True: tuples wait undecided in the buffer, none is shed before
        self._last = Counts()
        self._buffer: list[int] = []
        self._head = 0
        self._undecided = 0  # the last ones of the buffer

    @property
    def waiting(self) -> int:
        return len(self._buffer) - self._head

    @property
    def pending(self) -> int:
        return self._undecided

    @property
    def admitted(self) -> int:
        return self.offered - self.shed - self._undecided

    def admit_until(self, until_s: float, rule: UniformRule) -> tuple[Ints, Ints]:
        """Tuples that arrive until then: those that enter the buffer, and those shed at once."""
        start = self.offered
        stop = int(np.searchsorted(self.times_s, until_s, side="right"))
        self.offered = max(start, stop)
        ids = self.ids[start:stop]
        if self.buffered or rule.keep_ppm == PPM or not ids.size:
            return ids, ids[:0]
        kept = keep_mask(start, stop, rule, self.partition)
        return ids[kept], ids[~kept]

    def put(self, ids: list[int]) -> None:
        self._buffer.extend(ids)
        if self.buffered:
            self._undecided += len(ids)

    def take(self, count: int) -> list[int]:
        """The oldest ones; whoever was undecided is admitted by this."""
        head = self._head
        taken = self._buffer[head : head + count]
        self._head = head + len(taken)
        self._undecided = min(self._undecided, len(self._buffer) - self._head)
        if self._head > 4096 and 2 * self._head > len(self._buffer):
            del self._buffer[: self._head]
            self._head = 0
        return taken

    @property
    def offered_now(self) -> int:
        """Since the last call of `since_last`."""
        return self.offered - self._last.offered

    def since_last(self) -> Counts:
        """What happened since the last call."""
        now = Counts(self.offered, self.admitted, self.shed)
        new, self._last = now.since(self._last), now
        return new

    def pending_ids(self) -> list[int]:
        return self._buffer[len(self._buffer) - self._undecided :]

    def keep_pending(self, kept: list[int]) -> None:
        """Shed all undecided tuples but these."""
        self.shed += self._undecided - len(kept)
        self._buffer[len(self._buffer) - self._undecided :] = kept
        self._undecided = len(kept)


class Crossing(Input):
    """Where tuples of an operator enter another class: that class's gate stands in between."""

    def __init__(self, name: str, class_name: str, partition: int) -> None:
        super().__init__(name, class_name, np.zeros(0), np.zeros(0, dtype=np.int64), partition)
        self._rule: UniformRule | None = None
        self._mask: list[bool] = []  # of the positions from _mask_start on
        self._mask_start = 0

    def cross(self, ids: list[int], rule: UniformRule) -> tuple[list[int], list[int]]:
        """Those that enter, and those that are shed."""
        start = self.offered - self._mask_start
        stop = start + len(ids)
        self.offered += len(ids)
        if rule.keep_ppm == PPM:
            return ids, []
        if rule != self._rule or stop > len(self._mask):
            first = self._mask_start + start
            ahead = first + max(BLOCK, len(ids))
            self._mask = keep_mask(first, ahead, rule, self.partition).tolist()
            self._rule, self._mask_start, start, stop = rule, first, 0, len(ids)
        mask = self._mask[start:stop]
        kept = list(compress(ids, mask))
        self.shed += len(ids) - len(kept)
        return kept, [i for i, keep in zip(ids, mask, strict=True) if not keep]


def open_inputs(network: Network, arrivals: Mapping[str, Floats]) -> tuple[list[Input], Floats]:
    """The inputs of a network, and the arrival time of every tuple (numbered over all streams)."""
    names = [stream.name for stream in network.streams]
    times = checked_arrivals(names, arrivals)
    merged = np.concatenate(times)
    owner = np.repeat(np.arange(len(names)), [part.size for part in times])
    order = np.argsort(merged, kind="stable")
    inputs = []
    for i, stream in enumerate(network.streams):
        ids = np.flatnonzero(owner[order] == i)
        inputs.append(Input(stream.name, stream.class_name, times[i], ids, partition=i))
    return inputs, merged[order]


def keep_at_random(inputs: Sequence[Input], keep: int, rng: np.random.Generator) -> None:
    """Of everything undecided in these buffers, keep a random choice of so many."""
    pending = [(source, tuple_id) for source in inputs for tuple_id in source.pending_ids()]
    kept: dict[str, list[int]] = {source.name: [] for source in inputs}
    for k in np.sort(rng.permutation(len(pending))[:keep]).tolist():
        source, tuple_id = pending[k]
        kept[source.name].append(tuple_id)
    for source in inputs:
        source.keep_pending(kept[source.name])


def owners_of(inputs: Sequence[Input], tuples: int) -> list[int]:
    """Which input every tuple belongs to; not needed for a single one."""
    if len(inputs) == 1:
        return []
    owners = np.zeros(tuples, dtype=np.int64)
    for i, source in enumerate(inputs):
        owners[source.ids] = i
    found: list[int] = owners.tolist()
    return found


def checked_arrivals(names: Sequence[str], arrivals: Mapping[str, Floats]) -> list[Floats]:
    """The arrival times of every named stream; a stream without any is silent."""
    for name in arrivals:
        if name not in names:
            raise unknown_name("stream", name, names)
    return [_checked(name, arrivals.get(name, np.zeros(0))) for name in names]


def _checked(name: str, times_s: Floats) -> Floats:
    checked = np.asarray(times_s, dtype=np.float64)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        raise SpillwayError(f"arrival times of stream '{name}' are not a list of finite numbers")
    if checked.size and (checked[0] < 0.0 or bool((np.diff(checked) < 0.0).any())):
        raise SpillwayError(
            f"arrival times of stream '{name}' decrease or are negative: sort them from zero up"
        )
    return checked


def backlog_of(waiting_s: Floats, now_s: float, target: Target) -> Backlog:
    """Of tuples that arrived at these times and wait."""
    if not waiting_s.size:
        return Backlog()
    ages = np.maximum(now_s - waiting_s, 0.0)
    return Backlog(
        pending_tuples=waiting_s.size,
        mean_age_s=float(ages.mean()),
        statistic_age_s=statistic_of(ages, target) or 0.0,
        oldest_age_s=float(ages.max()),
    )


class Timeline:
    """Tuples of the current period in order of time, and how many were dropped by when."""

    def __init__(self, ids: list[int], times_s: list[float], dropped_s: list[float]) -> None:
        self._ids = ids
        self._times_s = times_s
        self._dropped_s = dropped_s
        self._next_id = 0
        self._next_drop = 0
        self.next_s = inf
        self._look_ahead()

    def _look_ahead(self) -> None:
        i, j = self._next_id, self._next_drop
        arrival_s = self._times_s[i] if i < len(self._times_s) else inf
        dropped_s = self._dropped_s[j] if j < len(self._dropped_s) else inf
        self.next_s = arrival_s if arrival_s < dropped_s else dropped_s

    def until(self, now_s: float) -> tuple[list[int], int]:
        """What has arrived by now, and how many tuples were dropped by now."""
        start, first = self._next_id, self._next_drop
        self._next_id = bisect_right(self._times_s, now_s, start)
        self._next_drop = bisect_right(self._dropped_s, now_s, first)
        self._look_ahead()
        return self._ids[start : self._next_id], self._next_drop - first

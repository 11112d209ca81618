"""The way into the network: arrivals, the gate of each class, and the input buffers."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from spillway.errors import SpillwayError, unknown_name
from spillway.gate.sampling import PPM, UniformRule, keep_mask
from spillway.model import Backlog, Target
from spillway.plants.sim.network import Network
from spillway.plants.sim.state import Counts
from spillway.plants.sim.statistics import Floats, Ints, statistic_of


class Input:
    """One stream in front of the network: what arrived, what was shed, what waits."""

    def __init__(self, name: str, class_name: str, times_s: Floats, ids: Ints, partition: int):
        self.name = name
        self.class_name = class_name
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

"""Which tuples left the network, when, and which of them are gone on all their paths.

The engine only appends to plain lists while it runs; everything else is done in bulk, once per
control period.
"""

from dataclasses import dataclass

import numpy as np

from spillway_lab.engine.statistics import Floats, Ints

SHED = -2  # exit of a copy that another class's gate did not let in


@dataclass(frozen=True, kw_only=True)
class Departures:
    """What left since the last settlement. Tuples are numbered by arrival, over all streams."""

    ids: Ints
    times_s: Floats
    exits: Ints  # 2 x class of the last operator, plus 1 when it was an output; or SHED
    finished: Ints  # tuples of which nothing is left in the network, ascending


class DepartureLog:
    """Counts the copies of every tuple: a fork adds some, a discard or an output removes one."""

    def __init__(self, arrived_s: Floats, copies_at_entry: Ints) -> None:
        self.arrived_s = arrived_s
        self.departed_s = np.full(arrived_s.size, np.nan)  # of the last copy so far
        self._copies = copies_at_entry
        self._ids: list[int] = []
        self._runs: list[tuple[int, float, int]] = []  # tuples, time, exit
        self._forked: list[int] = []
        self._fork_runs: list[tuple[int, int]] = []  # tuples, additional copies of each

    def leave(self, ids: list[int], time_s: float, exit_code: int) -> None:
        self._ids.extend(ids)
        self._runs.append((len(ids), time_s, exit_code))

    def fork(self, ids: list[int], additional: int) -> None:
        self._forked.extend(ids)
        self._fork_runs.append((len(ids), additional))

    def settle(self) -> Departures:
        ids = np.array(self._ids, dtype=np.int64)
        runs = np.array(self._runs, dtype=np.float64).reshape(-1, 3)
        lengths = runs[:, 0].astype(np.int64)
        times_s = np.repeat(runs[:, 1], lengths)
        exits = np.repeat(runs[:, 2].astype(np.int64), lengths)
        self._settle_forks()
        self._ids, self._runs = [], []
        if not ids.size:
            return Departures(ids=ids, times_s=times_s, exits=exits, finished=ids)
        self.departed_s[ids] = times_s  # ids repeat in order of time: the last one stays
        first = int(ids.min())
        gone = np.bincount(ids - first)
        copies = self._copies[first : first + gone.size]
        copies -= gone
        finished: Ints = first + np.flatnonzero((gone > 0) & (copies == 0))
        return Departures(ids=ids, times_s=times_s, exits=exits, finished=finished)

    def _settle_forks(self) -> None:
        if not self._forked:
            return
        ids = np.array(self._forked, dtype=np.int64)
        runs = np.array(self._fork_runs, dtype=np.int64)
        first = int(ids.min())
        added = np.bincount(ids - first, weights=np.repeat(runs[:, 1], runs[:, 0]))
        self._copies[first : first + added.size] += added.astype(np.int64)
        self._forked, self._fork_runs = [], []

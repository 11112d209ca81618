"""The share under which tuples came.

A load manager of a control period sets a share of what arrives from now on. At a gate tuples are
dropped later, when a batch is planned: what waits then came under one share or several. Each tuple
is kept with the share that was in force when it arrived, as an entry shedder would have done.
"""

import numpy as np

from spillway.gate.arrivals import Arrivals


class EntryShare:
    def __init__(self) -> None:
        self._since_s: list[float] = []  # ascending; the share before the first is 1
        self._shares: list[float] = []

    @property
    def now(self) -> float:
        return self._shares[-1] if self._shares else 1.0

    def set(self, share: float, now_s: float) -> None:
        """From now on. A clock that jumped back takes back what it now calls the future."""
        while self._since_s and self._since_s[-1] >= now_s:
            self._since_s.pop()
            self._shares.pop()
        self._since_s.append(now_s)
        self._shares.append(share)

    def of(self, arrivals: Arrivals, oldest: int | None = None) -> float:
        """The mean over the waiting tuples, or over the oldest of them; forgets what is past."""
        tuples = arrivals.tuples if oldest is None else min(oldest, arrivals.tuples)
        if tuples <= 0 or not self._shares:
            return self.now
        self._forget(float(arrivals.times_s[0]))
        counts = np.interp(self._since_s, arrivals.times_s, arrivals.counts)
        bounds = np.minimum(np.concatenate(([0.0], counts, [float(tuples)])), tuples)
        return float(np.diff(bounds) @ np.array([1.0, *self._shares]) / tuples)

    def _forget(self, before_s: float) -> None:
        while len(self._since_s) > 1 and self._since_s[1] <= before_s:
            del self._since_s[0], self._shares[0]

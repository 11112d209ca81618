"""When positions of a partition arrived, from samples of its high watermark."""

import numpy as np

from spillway.ports import ArrivalCurve

HISTORY_POINTS = 4096


class WatermarkHistory:
    """Points (position, time): everything below the position had arrived by then.

    A watermark that stood still is remembered, so that a burst after a pause does not look as
    though it had trickled in. When the history is full, every second point of its older half goes:
    the past gets coarser, the present stays exact.
    """

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._times_s: list[float] = []
        self._quiet_until_s: float | None = None

    @property
    def first(self) -> int | None:
        return self._positions[0] if self._positions else None

    @property
    def first_time_s(self) -> float:
        return self._times_s[0]

    def record(self, position: int, now_s: float) -> None:
        """The next position to be written is `position` now."""
        if self._times_s and now_s < max(self._times_s[-1], self._quiet_until_s or 0.0):
            self._set_back(now_s)
        if self._positions and position <= self._positions[-1]:
            self._quiet_until_s = now_s
            return
        if self._quiet_until_s is not None and position > self._positions[-1] + 1:
            burst = position - self._positions[-1]
            first_s = self._quiet_until_s + (now_s - self._quiet_until_s) / burst
            self._append(self._positions[-1] + 1, first_s)
        self._append(position, now_s)
        self._quiet_until_s = None

    def seed(self, points: list[tuple[int, float]]) -> None:
        """Samples older than the first one, in order of time."""
        known = list(zip(self._positions, self._times_s, strict=True))
        self._positions, self._times_s, quiet_until_s = [], [], self._quiet_until_s
        self._quiet_until_s = None
        for position, time_s in points + known:
            self.record(position, time_s)
        self._quiet_until_s = quiet_until_s

    def curve(self, start: int, stop: int) -> ArrivalCurve:
        """The known points inside the span and interpolated ones at its ends."""
        positions = np.array(self._positions, dtype=np.int64)
        times_s = np.array(self._times_s, dtype=np.float64)
        inside = positions[(positions > start) & (positions < stop)]
        points = np.unique(np.concatenate(([start], inside, [stop]))).astype(np.int64)
        return ArrivalCurve(positions=points, times_s=np.interp(points, positions, times_s))

    def _set_back(self, now_s: float) -> None:
        """The clock was set back: nothing has arrived later than now."""
        self._times_s = [min(time_s, now_s) for time_s in self._times_s]
        if self._quiet_until_s is not None:
            self._quiet_until_s = min(self._quiet_until_s, now_s)

    def _append(self, position: int, time_s: float) -> None:
        self._positions.append(position)
        self._times_s.append(time_s)
        if len(self._positions) > HISTORY_POINTS:
            half = HISTORY_POINTS // 2
            self._positions = self._positions[:half:2] + self._positions[half:]
            self._times_s = self._times_s[:half:2] + self._times_s[half:]

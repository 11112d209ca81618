"""The only place that knows the time."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds since the Unix epoch (or since the start of a simulation)."""
        ...


class WallClock:
    def now_s(self) -> float:
        return time.time()


class ManualClock:
    """A clock that stands still until it is moved: virtual time, and tests of clock jumps."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds

    def set(self, now_s: float) -> None:
        self._now_s = now_s

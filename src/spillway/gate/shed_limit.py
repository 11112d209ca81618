"""`max_shed: 20% per 10m`: beyond it the delay gives way instead of the data."""

import re
from collections import deque
from dataclasses import dataclass

from spillway.errors import SpillwayError
from spillway.gate.measuring import Standing
from spillway.model import parse_duration_s

_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s+per\s+(\S+)\s*")
_POINTS = 120  # of the window that are remembered


@dataclass(frozen=True, kw_only=True, slots=True)
class ShedLimit:
    """At most this share of what was offered within any such time."""

    share: float
    per_s: float
    text: str

    @classmethod
    def parse(cls, text: str) -> "ShedLimit":
        match = _FORM.fullmatch(text)
        share = float(match[1]) / 100.0 if match else -1.0
        if match is None or not 0.0 <= share <= 1.0:
            raise SpillwayError(
                f"max_shed is '{text}': it must be a percentage from 0 to 100 per duration,"
                " for example '20% per 10m'"
            )
        return cls(share=share, per_s=parse_duration_s(match[2]), text=text.strip())


class ShedAccount:
    """What may still be shed, by what was offered and shed within the time."""

    def __init__(self, limit: ShedLimit) -> None:
        self.limit = limit
        self._past: deque[Standing] = deque()

    def least_share(self, now: Standing) -> float:
        """The least that must be kept of what waits now."""
        past = self._past
        if past and now.now_s < past[-1].now_s:  # the clock was set back
            past.clear()
        if not past or now.now_s - past[-1].now_s >= self.limit.per_s / _POINTS:
            past.append(now)
        while len(past) > 1 and now.now_s - past[1].now_s >= self.limit.per_s:
            past.popleft()
        began, waiting = past[0], now.backlog.pending_tuples
        offered = now.offered_tuples - began.offered_tuples + began.backlog.pending_tuples
        free = self.limit.share * offered - (now.shed_tuples - began.shed_tuples)
        if waiting <= 0 or free >= waiting:
            return 0.0
        return min(1.0, 1.0 - free / waiting)

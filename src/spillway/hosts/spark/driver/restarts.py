"""When a query that ended by itself is started again, and what it died of, in one line."""

import re
from collections import Counter

from spillway.errors import SpillwayError

WINDOW_S = 300.0
WAITS_S = (0.0, 2.0, 5.0, 15.0, 30.0)  # before each restart within the window; then it is given up

_OURS = re.compile(r"\bSpillwayError: (.+)")
_ERROR = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Error|Exception|Interrupt)\b")


class Restarts:
    """At once the first time: a killed process. Then longer and longer: an outage takes time."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._ended_s: dict[str, list[float]] = {}
        self._due_s: dict[str, float] = {}

    def due(self, query: str, now_s: float, cause: str) -> bool:
        """Asked again and again once a query has ended; True when it is to be started now."""
        if query not in self._due_s:
            recent = [t for t in self._ended_s.get(query, ()) if now_s - t < WINDOW_S]
            if len(recent) >= len(WAITS_S):
                raise SpillwayError(
                    f"query '{query}' ended {len(recent) + 1} times within {WINDOW_S:.0f} s"
                    f" and is not restarted again; its last error: {cause}"
                )
            self._ended_s[query] = [*recent, now_s]
            self._due_s[query] = now_s + WAITS_S[len(recent)]
        if now_s < self._due_s[query]:
            return False
        del self._due_s[query]
        self.counts[query] += 1
        return True


def is_ours(error: str) -> bool:
    """Whether the error is a refusal of this package, such as a column that is not there."""
    return _OURS.search(error) is not None


def cause_of(error: str) -> str:
    """The line of Spark's message that says what happened: ours, else the last error in it."""
    if (ours := _OURS.search(error)) is not None:
        return ours.group(1).strip()
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]
    return (named or lines or ["no message"])[-1 if named else 0]

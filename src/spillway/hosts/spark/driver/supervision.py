"""What is unusual about a flow's queries, and when one that ended by itself is started again."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spillway.classes.balance import QueryLoad
from spillway.errors import SpillwayError
from spillway.hosts.spark.driver.progress import BatchProgress, end_offsets
from spillway.hosts.spark.planner.around import LAPSED
from spillway.logs.dead_letters import dead_letter_totals, place_of
from spillway.model import Target

QUIET_S = 10.0  # a class without a new tuple for so long is called quiet
NO_DATA = "no tuple has arrived yet: its share is lent to the others"

WINDOW_S = 300.0
WAITS_S = (0.0, 2.0, 5.0, 15.0, 30.0)  # before each restart within the window; then it is given up

_OURS = re.compile(r"\bSpillwayError: (.+)")
_SLOW_START = "Python worker failed to connect back"
_ERROR = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Error|Exception|Interrupt)\b")


class Restarts:
    """At once the first time: a killed process. Then longer and longer: an outage takes time."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._ended_s: dict[str, list[float]] = {}
        self._due_s: dict[str, float] = {}

    def due(self, query: str, now_s: float, cause: str, *, for_ever: bool = False) -> bool:
        """Asked again and again once a query has ended; True when it is to be started now.

        `for_ever`: never given up, because nothing is wrong with it.
        """
        if query not in self._due_s:
            recent = [t for t in self._ended_s.get(query, ()) if now_s - t < WINDOW_S]
            if for_ever:
                recent = recent[1 - len(WAITS_S) :]
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

    def forget(self, query: str) -> None:
        """It has left; should it come again, it has never ended."""
        for known in (self.counts, self._ended_s, self._due_s):
            known.pop(query, None)


def is_ours(error: str) -> bool:
    """Whether the error is a refusal of this package, such as a column that is not there."""
    return _OURS.search(error) is not None


def is_slow_start(error: str) -> bool:
    """Whether Spark's Python process did not connect within Spark's ten seconds."""
    return _SLOW_START in error


def is_passing(error: str) -> bool:
    """Whether nothing is wrong with the query, only with the moment."""
    return is_slow_start(error) or LAPSED in error


def cause_of(error: str) -> str:
    """The line of Spark's message that says what happened: ours, else the last error in it."""
    if (ours := _OURS.search(error)) is not None:
        return ours.group(1).strip()
    if is_slow_start(error):
        return "its Python process did not connect within Spark's 10 s: the machine is busy"
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]
    return (named or lines or ["no message"])[-1 if named else 0]


QUIET = (
    f"no tuple for {QUIET_S:.0f} s and more: its share is lent to the others,"
    " the next tuple gets a batch at once"
)

GIVES_WAY = "max_shed is reached: the delay gives way, not the data"


def condition_of(
    target: Target,
    queries: Collection[QueryLoad],
    silent_s: float | None,
    waiting_tuples: int | None = 0,
    *,
    busy: bool = False,
) -> str | None:
    """None when all is as usual; `silent_s` is the time since the last tuple, None before it.

    `waiting_tuples` at its gates, None where one was not asked yet. While a batch runs (`busy`)
    nobody looks whether tuples come.
    """
    if silent_s is None:
        return NO_DATA if waiting_tuples == 0 and not busy else None
    if silent_s > QUIET_S and not busy:
        return QUIET
    if any(query.gives_way for query in queries):
        return GIVES_WAY
    fixed_s = max((query.fixed_s for query in queries), default=0.0)
    if fixed_s >= target.delay_s:
        return (
            f"its target ({target}) cannot be met: a batch alone takes {fixed_s:.2f} s;"
            " what can be carried is carried late, and nothing is shed for this target"
        )
    return None


@dataclass(frozen=True, kw_only=True)
class Losses:
    """What a query never gets to see although nobody decided to shed it: totals of one gate."""

    malformed_tuples: int = 0  # could not be read
    dropped_tuples: int = 0  # by the log, before they were planned: part of `shed`
    vanished_tuples: int = 0  # from the log between planning and reading: part of `admitted`


class LossWatch:
    """Notices when the totals of a gate have changed."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = roots  # of dead letters, by gate
        self._known: dict[str, Losses] = {}

    def changed(self, progress: BatchProgress) -> Iterator[tuple[str, Losses]]:
        """The gates of a finished batch whose totals are new."""
        for offset in end_offsets(progress):
            root = self._roots.get(offset.gate)
            place = place_of(root or "", offset.gate, offset.began_us)
            letters = {} if root is None else dead_letter_totals(place)
            found = Losses(
                malformed_tuples=letters.get("malformed", 0),
                dropped_tuples=offset.totals.lost,
                vanished_tuples=letters.get("lost", 0),
            )
            if found != self._known.get(offset.gate, Losses()):
                self._known[offset.gate] = found
                yield offset.gate, found

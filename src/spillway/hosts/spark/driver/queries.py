"""A flow's queries while they run: started one after another, and again when they end.

Spark gives a query's planner, a Python process, ten seconds to connect, and nothing can change
that. Where other programs hold the machine, planners that start together take each other's ten.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from spillway.clock import Clock
from spillway.errors import SpillwayError
from spillway.hosts.spark.driver.states import RESTARTING, States
from spillway.hosts.spark.driver.supervision import Restarts, cause_of, is_ours, is_passing

FIRST_LOOK_S = 30.0  # the next query is started then, whatever the one before it does
_LOOK_S = 0.05


class Queries:
    """`start` starts one, `states` says whether it has come."""

    def __init__(
        self,
        names: Iterable[str],
        start: Callable[[str], StreamingQuery],
        states: States,
        note: Callable[..., None],
        clock: Clock,
    ) -> None:
        self._names = tuple(names)
        self._start, self._states, self._note, self._clock = start, states, note, clock
        self.restarts = Restarts()
        self.stopping = threading.Event()
        self._running: dict[str, StreamingQuery] = {}
        self._coming: tuple[str, float] | None = None  # started last, until when it is waited for

    def start(self) -> None:
        """All of them, in order: each one when the gates of the one before it are there."""
        for name in self._names:
            if self.stopping.is_set():
                return
            self._begin(name)
            while self._is_coming() and self._running[name].isActive:
                if self.stopping.wait(_LOOK_S):
                    return

    def supervise(self) -> None:
        """Restart queries that ended by themselves: a killed planner or worker ends its query."""
        coming = self._is_coming()
        for name, query in list(self._running.items()):
            if self.stopping.is_set() or query.isActive:
                continue
            if self._coming is not None and self._coming[0] == name:
                self._coming, coming = None, False
            self._states.phases[name] = RESTARTING
            self._states.begun_s.pop(name, None)
            if not coming:
                coming = self._restart(name, query)

    def add(self, name: str) -> None:
        """One more, while the others run."""
        self._begin(name)

    def remove(self, name: str) -> None:
        """Stop one for good: nothing of it runs when this returns."""
        query = self._running.pop(name, None)
        if query is not None:
            query.stop()
        if self._coming is not None and self._coming[0] == name:
            self._coming = None
        for known in (self._states.begun_s, self._states.phases, self._states.reasons):
            known.pop(name, None)
        self.restarts.forget(name)

    def stop(self) -> None:
        for query in self._running.values():
            query.stop()

    def _begin(self, name: str) -> None:
        begun_s = self._clock.now_s()
        try:
            self._running[name] = self._start(name)
        except PySparkException as error:
            cause = cause_of(str(error))
            raise SpillwayError(f"query '{name}' does not start: {cause}") from error
        self._states.begun_s[name] = begun_s
        self._coming = name, time.monotonic() + FIRST_LOOK_S

    def _is_coming(self) -> bool:
        """Whether the query that was started last has yet to be heard of."""
        if self._coming is not None:
            name, until_s = self._coming
            if self._states.arrived(name) or time.monotonic() > until_s:
                self._coming = None
        return self._coming is not None

    def _restart(self, name: str, ended: StreamingQuery) -> bool:
        """Whether it was started now."""
        now_s, error = self._clock.now_s(), _error_of(ended)
        cause, passes = cause_of(error), is_passing(error)
        is_first = ended.lastProgress is None and not self.restarts.counts[name]
        if is_ours(error) and is_first and not passes:
            raise SpillwayError(f"query '{name}' does not start: {cause}")
        if not self.restarts.due(name, now_s, cause, for_ever=passes):
            return False
        self._note("restarted", query=name, error=cause)
        self._begin(name)
        return True


def _error_of(ended: StreamingQuery) -> str:
    error: Any = ended.exception()
    return str(error or "ended without an error")

"""What each query of a flow is doing, in a word or two: only what was heard of it."""

from collections.abc import Callable, Mapping

from spillway.hosts.spark.driver.progress import BatchProgress, unread_tuples
from spillway.model import Report

STARTING, RESTARTING, WARMING_UP = "starting", "restarting", "warming up"
NO_TUPLES, CATCHING_UP, RUNNING = "no tuples yet", "catching up", "running"


class States:
    """`last_report` is what a query's gate said last, `progress` its last batch in Spark's words,
    `counted_s` when the last batch with tuples ended."""

    def __init__(
        self,
        last_report: Callable[[str], Report | None],
        progress: Mapping[str, BatchProgress],
        counted_s: Callable[[str], float | None],
    ) -> None:
        self._last_report, self._progress, self._counted_s = last_report, progress, counted_s
        self.phases: dict[str, str] = {}  # of queries that do not run yet
        self.begun_s: dict[str, float] = {}  # when they were started last, wall time
        self.reasons: dict[str, str] = {}  # of their gates' last decisions

    def of(self, name: str) -> str:
        if not self.arrived(name):
            return self.phases.get(name, STARTING)
        counted_s = self._counted_s(name)
        if counted_s is None or counted_s < self.begun_s[name]:
            return WARMING_UP if self.waiting(name) else NO_TUPLES
        is_late = self.reasons.get(name, "").startswith(CATCHING_UP)
        return CATCHING_UP if is_late else RUNNING

    def catching_up(self) -> dict[str, str]:
        """What the gates of queries that catch up say of it."""
        return {name: said for name, said in self.reasons.items() if self.of(name) == CATCHING_UP}

    def arrived(self, name: str) -> bool:
        """Whether its gate has asked since its start, or its first trigger has run."""
        begun_s = self.begun_s.get(name)
        if begun_s is None or self.phases.get(name) == WARMING_UP:
            return False
        report, seen = self._last_report(name), self._progress.get(name)
        asked = report is not None and report.time_s >= begun_s
        return asked or (seen is not None and seen.started_s >= begun_s)

    def waiting(self, name: str) -> int | None:
        """Tuples at its gates when it was heard of last; None before that."""
        if not self.arrived(name):
            return None
        report, seen = self._last_report(name), self._progress.get(name)
        if report is not None and (seen is None or report.time_s >= seen.ended_s):
            return report.backlog.pending_tuples
        return None if seen is None else unread_tuples(seen)

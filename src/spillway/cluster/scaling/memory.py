"""What policies remember of hosts: recent changes, violations in a row, recent utilisation."""

from collections import deque

from spillway.cluster.views import ClusterView


class Grace:
    """A grace period per host, from the last time its set of operators changed or it was told to.

    The change is read from the views, so it covers sources, destinations and new hosts alike, and
    starts anew when the last of several moves has finished.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._until_s: dict[str, float] = {}
        self._operators: dict[str, frozenset[str]] = {}

    def observe(self, view: ClusterView) -> None:
        hosted = {h.name: frozenset(op.name for op in h.operators) for h in view.running}
        if self._operators:  # the first view is no change
            for host, operators in hosted.items():
                if self._operators.get(host) != operators:
                    self.start(host, view.time_s)
        self._operators = hosted
        self._until_s = {host: end for host, end in self._until_s.items() if host in hosted}

    def start(self, host: str, now_s: float) -> None:
        self._until_s[host] = now_s + self._grace_s

    def end(self, host: str) -> None:
        self._until_s.pop(host, None)

    def holds(self, host: str, now_s: float) -> bool:
        return now_s < self._until_s.get(host, 0.0)


class Streaks:
    """How many measurements in a row each subject has been beyond its threshold."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, subject: str, beyond: bool) -> int:
        self._counts[subject] = self._counts.get(subject, 0) + 1 if beyond else 0
        return self._counts[subject]

    def reset(self, subject: str) -> None:
        self._counts[subject] = 0


class Recent:
    """Each host's utilisation, averaged over its last `count` measurements."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: dict[str, deque[float]] = {}

    def observe(self, view: ClusterView) -> None:
        self._values = {
            host.name: self._values.get(host.name, deque(maxlen=self._count))
            for host in view.running
        }
        for host in view.running:
            self._values[host.name].append(host.utilisation)

    def mean(self, host: str) -> float:
        values = self._values[host]
        return sum(values) / len(values)

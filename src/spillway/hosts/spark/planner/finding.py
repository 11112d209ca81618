"""A gate that was given no control loop finds one that has attached to its application."""

import os
from collections.abc import Callable

from spillway.clock import Clock
from spillway.hosts.spark.attached import announced
from spillway.hosts.spark.planner.asking import Ask, Driver

_LOOK_S = 1.0  # whoever attaches is found within this


class Attached:
    def __init__(
        self, clock: Clock, elapsed: Callable[[], float], java_pid: int | None = None
    ) -> None:
        self._clock, self._elapsed = clock, elapsed
        self._java_pid = os.getppid() if java_pid is None else java_pid
        self._looked_s = float("-inf")
        self._found: tuple[str, Driver] | None = None

    def ask(self) -> Ask | None:
        """None where nobody has attached, or has detached since."""
        if self._elapsed() - self._looked_s >= _LOOK_S:
            self._looked_s = self._elapsed()
            self._look()
        return None if self._found is None else self._found[1].ask

    def _look(self) -> None:
        channel = announced(self._java_pid)
        if self._found is not None and self._found[0] != channel:
            self._found[1].close()
            self._found = None
        if self._found is None and channel is not None:
            self._found = channel, Driver(channel, self._clock)

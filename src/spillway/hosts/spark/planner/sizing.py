"""As many tasks in a batch as there are cores: by the driver's word, or by what it wrote down."""

from collections.abc import Callable, Mapping

from spillway.hosts.spark.cores import cores_told, tellers


class Cores:
    """Tasks follow the cores, unless the user said how many tasks; costs follow either way.

    What the gate learned first belongs to the cores that it was told first.
    """

    def __init__(
        self, options: Mapping[str, str], tasks: int, resized: Callable[[float], None]
    ) -> None:
        self.tasks = tasks
        self._given, self._resized = "parallelism" in options, resized
        self._tellers = tellers()
        self._last: int | None = None

    def told(self, tasks: int | None) -> None:
        """A driver says it with every order."""
        if tasks is None or tasks == self._last:
            return
        if self._last is not None:
            self._resized(tasks / self._last)
        self._last = tasks
        if not self._given:
            self.tasks = tasks

    def look(self) -> None:
        """In somebody else's job, `spillway.api.scale` writes it down."""
        self.told(cores_told(self._tellers))

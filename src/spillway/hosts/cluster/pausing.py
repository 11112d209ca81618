"""How long a query's results paused when it came to a node: from the last batch that ended before
to the first that ended here, by the clock of the file system that holds the checkpoints."""

from pathlib import Path


class Pauses:
    def __init__(self) -> None:
        self.known_s: dict[str, float] = {}  # by run
        self._before_s: dict[str, float] = {}

    def begins(self, run: str, checkpoint: Path) -> None:
        """It is to go on here."""
        if (last_s := _committed_s(checkpoint)) is not None:
            self._before_s[run] = last_s

    def look(self, run: str, checkpoint: Path) -> None:
        """Whether a batch has ended here."""
        if run in self._before_s and (_committed_s(checkpoint) or 0.0) > self._before_s[run]:
            self.known_s[run] = (_committed_s(checkpoint) or 0.0) - self._before_s.pop(run)

    def between(self, run: str, origin: Path, checkpoint: Path) -> None:
        """Of a query that came while it ran: its first own batch has ended."""
        last_s, first_s = _committed_s(origin), _committed_s(checkpoint)
        if last_s is not None and first_s is not None:
            self.known_s[run] = max(0.0, first_s - last_s)

    def forget(self, run: str) -> None:
        self.known_s.pop(run, None)
        self._before_s.pop(run, None)


def _committed_s(checkpoint: Path) -> float | None:
    """When the last batch ended; None: none has."""
    commits = checkpoint / "commits"
    names = [int(f.name) for f in commits.glob("[0-9]*") if f.name.isdecimal()]
    return (commits / str(max(names))).stat().st_mtime if names else None

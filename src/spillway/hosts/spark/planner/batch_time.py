"""How long a batch took, as the planner can see it.

With Spark's default trigger a batch has ended when the next offset is asked for. With a trigger
interval the next question comes at the next tick, so the end is read from Spark's commit log.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError

_TICK_S = 0.5  # intervals are whole multiples of this, nearly always
_LAG_S = 0.03  # from the tick until the gate is asked
_QUESTIONS = 10  # all of them on a tick by chance: once in 10^12 starts


@dataclass(kw_only=True)
class Running:
    """A batch between its planning and its end."""

    end: dict[str, Any] | None  # None: only other gates of the query have a part in it
    planned_s: float  # monotonic
    planned_at_s: float = 0.0  # wall time
    looked_s: float = 0.0  # what a shedder's look at the data took before that
    shown: bool = False
    replayed: bool = False


class TriggerWatch:
    """Notices a trigger interval that nobody told the gate about, within its first batches."""

    def __init__(self) -> None:
        self._asked = 0
        self._ticks: set[int] = set()  # those that a question came on

    def asked(self, now_s: float) -> None:
        """A question after a batch, at this wall time."""
        self._asked += 1
        if now_s % _TICK_S < _LAG_S:
            self._ticks.add(int(now_s / _TICK_S))
        if self._asked == len(self._ticks) == _QUESTIONS:
            raise SpillwayError(
                "the query seems to have a trigger interval, behind which the gate cannot see how"
                " long a batch takes: leave processingTime out (the gate paces itself), or set"
                " options 'trigger' (the interval) and 'checkpoint' (the checkpointLocation)"
            )


def committed_s(checkpoint: Path) -> float | None:
    """When Spark committed its last batch (epoch seconds); None before the first."""
    folder = checkpoint / "commits"
    try:
        last = max(int(file.name) for file in folder.iterdir() if file.name.isdigit())
        return (folder / str(last)).stat().st_mtime
    except (OSError, ValueError):
        return None

"""What a planner finds around it, and how long a batch took as it can see it.

With Spark's default trigger a batch has ended when the next offset is asked for. With a trigger
interval the next question comes at the next tick, so the end is read from Spark's commit log.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spillway.clock import Clock, WallClock
from spillway.errors import SpillwayError
from spillway.gate.gate import Gate
from spillway.gate.offsets import is_sentinel
from spillway.gate.options import OPTIONS, GateOptions
from spillway.gate.told import TellingGate
from spillway.hosts.spark.planner.asking import Ask, Leased
from spillway.hosts.spark.planner.joint import Joint
from spillway.lines import WaitingLines, line_of
from spillway.options import unknown

_TICK_S = 0.5  # intervals are whole multiples of this, nearly always
_DRIFT_S = 0.1  # within a batch: a clock that differs by more was set; file times are that coarse
_LAG_S = 0.03  # from the tick until the gate is asked
_IDLE_NAPS_S = 0.05, 0.2  # the longest of a gate without tuples, by its target
LAPSED = "lease ran out while a batch was planned"
_QUESTIONS = 10  # all of them on a tick by chance: once in 10^12 starts


@dataclass(frozen=True, kw_only=True)
class Around:
    """Time, the driver and the other gates of the query; tests bring their own."""

    clock: Clock = field(default_factory=WallClock)
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    ask: Ask | None = None  # None: the driver behind option `channel`, if there is one
    joint: Joint | None = None  # None: the gates that share option `joint`, if it is given


def gate_of(options: GateOptions, given: Mapping[str, str]) -> Gate:
    """`given` as the user wrote it: a record begins with what is the gate's of it, and holds
    nothing of the log's options, which may be secrets."""
    if options.record is None:
        return Gate(options)
    lines = WaitingLines(Path(options.record), "record")
    others = unknown(OPTIONS, given)
    own = {name: value for name, value in given.items() if name not in others}
    lines.add(line_of({"call": "options", "options": own}))
    return TellingGate(options, lambda told: lines.add(line_of(told)))


@dataclass(kw_only=True)
class Running:
    """A batch between its planning and its end."""

    end: dict[str, Any] | None  # None: only other gates of the query have a part in it
    planned_s: float  # monotonic
    planned_at_s: float = 0.0  # wall time
    looked_s: float = 0.0  # what a shedder's look at the data took before that
    shown: bool = False
    replayed: bool = False


def _say(text: str) -> None:
    """A planner has no other way to the user; Spark passes its standard error on."""
    print(f"spillway: {text}", file=sys.stderr, flush=True)


class TriggerWatch:
    """Notices a trigger interval that nobody told the gate about, within its first batches.

    From then on a question on a tick shows no batch's end: the batch may have ended long before. A
    question between ticks does: it came at once, after a batch longer than the interval.
    """

    def __init__(self, say: Callable[[str], None] = _say) -> None:
        self._say = say
        self._asked = 0
        self._ticks: set[int] = set()  # those that the first questions came on
        self._suspects = False

    def asked(self, now_s: float) -> bool:
        """A question after a batch, at this wall time: whether the batch has just ended."""
        on_tick = now_s % _TICK_S < _LAG_S
        if self._asked < _QUESTIONS:
            self._asked += 1
            if on_tick:
                self._ticks.add(int(now_s / _TICK_S))
            if len(self._ticks) == _QUESTIONS:
                self._suspects = True
                self._say(
                    "the query seems to have a trigger interval, behind which the gate cannot see"
                    " how long a batch takes: leave processingTime out (the gate paces itself), or"
                    " set options 'trigger' (the interval) and 'checkpoint' (the"
                    " checkpointLocation); until then such batches teach it nothing"
                )
        return not (self._suspects and on_tick)


class Silence:
    """The longer no tuple has come, the less often a gate looks for one: it costs a question to
    the brokers each time. What comes at last waits for a fiftieth of the silence before it."""

    def __init__(self, target_s: float, now_s: float) -> None:
        shortest_s, longest_s = _IDLE_NAPS_S
        self._longest_s = min(longest_s, max(shortest_s, target_s / 20.0))
        self._broken_s = now_s

    def broken(self, now_s: float) -> None:
        """Tuples wait, here or at another gate of the query."""
        self._broken_s = now_s

    def nap_s(self, now_s: float) -> float:
        return min(self._longest_s, (now_s - self._broken_s) / 50.0)


def committed_s(checkpoint: Path) -> float | None:
    """When Spark committed its last batch (epoch seconds); None before the first."""
    folder = checkpoint / "commits"
    try:
        last = max(int(file.name) for file in folder.iterdir() if file.name.isdigit())
        return (folder / str(last)).stat().st_mtime
    except (OSError, ValueError):
        return None


def took_s(by_clock_s: float, since_s: float) -> float | None:
    """How long a batch took that was planned `since_s` ago, by the monotonic clock; None where the
    wall clock was set meanwhile: nobody knows."""
    if not -_DRIFT_S < by_clock_s < since_s + _DRIFT_S:
        return None
    return max(1e-3, by_clock_s)


def require_durable(start: Mapping[str, Any], completed_seq: int | None) -> None:
    """Spark completes the previous batch before it shows the next plan, unless it logs late."""
    if not is_sentinel(start) and completed_seq != start["seq"]:
        raise SpillwayError(
            "asyncProgressTrackingEnabled is true: the gate needs the offset to be on disk"
            " before the batch runs; leave that option of writeStream out"
        )


def require_leased(lease: Leased | None) -> None:
    """Between the plan and its place in Spark's log a process can freeze for any time."""
    if lease is not None and not lease.holds:
        raise SpillwayError(
            f"this node's {LAPSED}: the query may run elsewhere by"
            " now; nothing to do, the node reports anew"
        )

"""What a planner finds around it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spillway.clock import Clock, WallClock
from spillway.gate.gate import Gate
from spillway.gate.options import OPTIONS, GateOptions
from spillway.gate.told import TellingGate
from spillway.hosts.spark.planner.asking import Ask
from spillway.hosts.spark.planner.joint import Joint
from spillway.lines import WaitingLines, line_of
from spillway.options import unknown


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

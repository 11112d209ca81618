"""What a planner finds around it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spillway.clock import Clock, WallClock
from spillway.gate.gate import Gate
from spillway.gate.options import GateOptions
from spillway.gate.told import TellingGate
from spillway.hosts.spark.planner.asking import Ask
from spillway.hosts.spark.planner.joint import Joint
from spillway.lines import WaitingLines, line_of


@dataclass(frozen=True, kw_only=True)
class Around:
    """Time, the driver and the other gates of the query; tests bring their own."""

    clock: Clock = field(default_factory=WallClock)
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    ask: Ask | None = None  # None: the driver behind option `channel`, if there is one
    joint: Joint | None = None  # None: the gates that share option `joint`, if it is given


def gate_of(options: GateOptions) -> Gate:
    if options.record is None:
        return Gate(options)
    lines = WaitingLines(Path(options.record), "record")
    return TellingGate(options, lambda told: lines.add(line_of(told)))

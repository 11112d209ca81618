"""Values that change at given times: cost traces, background jobs."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from spillway.errors import SpillwayError, require


@dataclass(frozen=True, kw_only=True)
class Steps:
    """`values[i]` holds from `times_s[i]` until the next time; `before` holds before the first."""

    times_s: Sequence[float]
    values: Sequence[float]
    before: float = 1.0
    name: str = "trace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "times_s", tuple(float(time) for time in self.times_s))
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        if len(self.times_s) != len(self.values):
            raise SpillwayError(
                f"{self.name} has {len(self.times_s)} times and {len(self.values)} values:"
                " give one value per time"
            )
        for earlier, later in zip(self.times_s, self.times_s[1:], strict=False):
            if later < earlier:
                raise SpillwayError(
                    f"{self.name} goes back in time ({later:g} s after {earlier:g} s):"
                    " sort it by time"
                )
        for value in (*self.values, self.before):
            if not (isfinite(value) and value >= 0.0):
                raise SpillwayError(
                    f"{self.name} holds {value!r}: it must be a number from zero up"
                )

    def at(self, time_s: float) -> float:
        index = bisect_right(self.times_s, time_s)
        return self.values[index - 1] if index else self.before

    def next_change_s(self, time_s: float) -> float:
        """The first time after `time_s` at which the value may differ; infinity when none."""
        index = bisect_right(self.times_s, time_s)
        return self.times_s[index] if index < len(self.times_s) else inf


STEADY = Steps(times_s=(), values=(), before=1.0)
NO_BACKGROUND = Steps(times_s=(), values=(), before=0.0, name="background job")


def checked_background(background: Steps) -> Steps:
    """A background job takes a share of the machine, never all of it."""
    for value in (*background.values, background.before):
        require(value < 1.0, "share taken by the background job", value, "below 1")
    return background


@dataclass(frozen=True, kw_only=True)
class Disturbances:
    """What changes around an engine while it runs."""

    cost_factor: Steps = STEADY  # on the cost of every operator
    background: Steps = NO_BACKGROUND  # share of the machine that another job takes

    def __post_init__(self) -> None:
        checked_background(self.background)

    def next_change_s(self, time_s: float) -> float:
        traces = (self.cost_factor, self.background)
        return min(trace.next_change_s(time_s) for trace in traces)


UNDISTURBED = Disturbances()

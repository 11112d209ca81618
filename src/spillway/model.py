"""The values that travel along the control path. All frozen, all with units in their names."""

import re
from dataclasses import dataclass
from typing import Literal

from spillway.errors import SpillwayError

Statistic = Literal["mean", "p95", "p99"]

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"^\s*([0-9]*\.?[0-9]+)\s*(us|ms|s|min|m|h)\s*$")


def parse_duration_s(text: str, what: str = "duration") -> float:
    """'300ms' -> 0.3. Zero and negative durations are refused."""
    match = _DURATION.match(text)
    value_s = float(match[1]) * _UNITS_S[match[2]] if match else 0.0
    if value_s <= 0.0:
        raise SpillwayError(
            f"{what} is '{text}': it must be a positive number with a unit"
            " (us, ms, s, m, h), for example '300ms' or '2s'"
        )
    return value_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A delay with the statistic that must stay at or below it.

    A mean target of y leaves about half of the tuples above y; p95 and p99 do not.
    """

    delay_s: float
    statistic: Statistic = "mean"

    def __post_init__(self) -> None:
        if not self.delay_s > 0.0:
            raise SpillwayError(
                f"delay target is {self.delay_s!r} s: it must be above zero, for example '2s'"
            )
        if self.statistic not in ("mean", "p95", "p99"):
            raise SpillwayError(
                f"statistic of the delay target is '{self.statistic}': it must be mean, p95 or p99"
            )

    @classmethod
    def parse(cls, text: str) -> "Target":
        """'2s' is a mean; 'p99 2s' and 'p95 300ms' name their statistic."""
        words = text.split()
        if len(words) == 1:
            return cls(delay_s=parse_duration_s(text, "delay target"))
        if len(words) == 2 and words[0] in ("mean", "p95", "p99"):
            delay_s = parse_duration_s(words[1], "delay target")
            return cls(delay_s=delay_s, statistic=words[0])  # type: ignore[arg-type]
        raise SpillwayError(
            f"delay target is '{text}': it must be a duration with an optional statistic"
            " (mean, p95, p99) before it, for example '2s' or 'p99 300ms'"
        )

    @property
    def quantile(self) -> float | None:
        """0.95 or 0.99; None for the mean."""
        return None if self.statistic == "mean" else int(self.statistic[1:]) / 100.0

    def __str__(self) -> str:
        return f"{self.statistic} {self.delay_s:g}s"


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """What waits at the gate when a decision is made."""

    pending_tuples: int = 0
    mean_age_s: float = 0.0
    statistic_age_s: float = 0.0  # the target's statistic of the ages (equals mean_age_s for mean)
    oldest_age_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRecord:
    """One finished micro-batch: what it kept and scanned, and how long it took."""

    kept_tuples: int
    scanned_tuples: int  # kept and shed
    duration_s: float
    ended_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One class over one control period, as its load manager sees it.

    Counts are of this period; queues are at its end. `load` is seconds of pipeline time per
    second: rate x load coefficient, summed over the class's inputs (thesis eq. 3.1).
    """

    time_s: float
    period_s: float
    target: Target
    offered_tuples: int
    admitted_tuples: int
    shed_tuples: int
    completed_tuples: int
    queued_tuples: int  # admitted or pending, not completed: the virtual queue
    queued_load_s: float  # real queues x load coefficient (thesis eq. 4.1)
    offered_load: float  # L, of everything offered, per second
    admitted_load: float  # the part of L that passed the gate, per second
    cost_s: float  # c: seconds of pipeline time per admitted tuple
    delay_s: float | None  # the target's statistic over what completed; None when nothing did
    busy_s: float  # pipeline time spent on tuples in this period
    backlog: Backlog = Backlog()
    batches: tuple[BatchRecord, ...] = ()  # finished since the last decision (micro-batch plants)
    batch_running: bool = False
    headroom: float | None = None  # assigned by the class scheduler; None when there is none
    class_name: str = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepFraction:
    """Admit this fraction of what arrives in the next period."""

    fraction: float


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepOfBacklog:
    """Of everything that waits at the gate, admit at most this many and shed the rest now."""

    tuples: int


Action = KeepFraction | KeepOfBacklog


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What to do next, and why."""

    action: Action
    reason: str
    headroom: float | None = None  # H or L_C the load manager now believes in
    aim_s: float | None = None  # the delay it aims at: the target, corrected by what was measured
    pace: float = 1.0  # what batches take now, over what their learned costs say


ADMIT_ALL = KeepFraction(fraction=1.0)

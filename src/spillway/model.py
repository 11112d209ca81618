"""The values that travel along the control path. All frozen, all with units in their names."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from spillway.errors import SpillwayError, shown
from spillway.handover import Owned, Positions

Statistic = Literal["mean", "p95", "p99"]

CHEAP = 0.1  # of the fixed price of a batch: what takes less is not worth shedding

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SPARKS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-z]+)", re.ASCII)
_LONGEST_S = 3.6e8  # 100,000 hours: microseconds of it are far from 64 bits
SHORTEST_DELAY_S = 0.001


def parse_duration_s(text: str, what: str = "duration") -> float:
    """'300ms' -> 0.3, as is Spark's '300 milliseconds'. Zero and endless ones are refused."""
    match = _DURATION.fullmatch(text.strip())
    unit = match[2] if match else ""
    unit_s = _UNITS_S.get(unit) or _SPARKS.get(unit.lower().removesuffix("s"), 0.0)
    value_s = float(match[1]) * unit_s if match else 0.0
    if not 1e-6 <= value_s <= _LONGEST_S:
        raise SpillwayError(
            f"{what} is '{shown(text)}': it must be a positive number with a unit"
            " (us, ms, s, m, h), for example '300ms' or '2s', from 1us to 100000h"
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
        if not SHORTEST_DELAY_S <= self.delay_s <= _LONGEST_S:
            raise SpillwayError(
                f"delay target is {self.delay_s:g}s: it must be at least 1ms, which is how finely"
                " Spark counts time, and at most 100000h, for example '2s'"
            )
        if self.statistic not in ("mean", "p95", "p99"):
            raise SpillwayError(
                f"statistic of the delay target is '{self.statistic}': it must be mean, p95 or p99"
            )

    @classmethod
    def parse(cls, text: str) -> "Target":
        """'2s' and '2 seconds' are a mean; 'p99 2s' and 'p95 300ms' name their statistic."""
        first, _, rest = text.strip().partition(" ")
        if first in ("mean", "p95", "p99") and rest.strip():
            delay_s = parse_duration_s(rest, "delay target")
            return cls(delay_s=delay_s, statistic=first)  # type: ignore[arg-type]
        if not rest or first[:1].isdigit():
            return cls(delay_s=parse_duration_s(text, "delay target"))
        raise SpillwayError(
            f"delay target is '{shown(text)}': it must be a duration with an optional statistic"
            " (mean, p95, p99) before it, for example '2s' or 'p99 300ms'"
        )

    @property
    def quantile(self) -> float | None:
        """0.95 or 0.99; None for the mean."""
        return None if self.statistic == "mean" else int(self.statistic[1:]) / 100.0

    @property
    def age_share(self) -> float:
        """The statistic of ages that are spread evenly over [0, 1]."""
        return 0.5 if self.quantile is None else self.quantile

    def __str__(self) -> str:
        return f"{self.statistic} {self.delay_s:.6f}".rstrip("0").rstrip(".") + "s"


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
    whole: bool | None = None  # nothing was to be left out; None: as the counts say


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What a micro-batch takes, as far as it is known: o + c n + s m for n kept of m scanned."""

    fixed_s: float  # o
    kept_s: float  # c, for each kept tuple, on top of scanning it
    scanned_s: float = 0.0  # s
    pace: float = 1.0  # what batches take now, over what o, c and s say
    noise: float = 0.1  # relative standard deviation of a duration
    # Covariance of the estimates of o, c - s and s, as oo, ok, os, kk, ks, ss.
    doubts: tuple[float, ...] = (0.0,) * 6

    def duration_s(self, kept: float, scanned: float) -> float:
        """By o, c and s alone; times `pace` is what it takes now."""
        return self.fixed_s + self.kept_s * kept + self.scanned_s * scanned

    def doubt_s(self, kept: float, scanned: float) -> float:
        """Standard deviation of the prediction that is due to the estimates, not to the noise."""
        n, m, (oo, ok, os, kk, ks, ss) = kept, kept + scanned, self.doubts
        cross = ok * n + os * m + ks * n * m
        return math.sqrt(max(0.0, oo + kk * n * n + ss * m * m + 2.0 * cross))

    @property
    def least_kept_s(self) -> float:
        """The smallest c that the batches so far do not speak against: two standard deviations."""
        _, _, _, kk, ks, ss = self.doubts
        return max(0.0, self.kept_s - 2.0 * math.sqrt(max(0.0, kk + 2.0 * ks + ss)))

    @property
    def cheap_tuples(self) -> int:
        """So many tuples take next to nothing beside the fixed price."""
        return int(CHEAP * self.fixed_s / self.kept_s) if self.kept_s > 0.0 else 0

    def slower(self, factor: float) -> "Prices":
        return replace(
            self,
            fixed_s=factor * self.fixed_s,
            kept_s=factor * self.kept_s,
            scanned_s=factor * self.scanned_s,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One gate (on an operator network: one class) over one control period, for its load manager.

    Counts are of this period. `load` is seconds of pipeline time per second: rate x load
    coefficient, summed over the inputs (thesis eq. 3.1). Queues are at the period's end; on
    micro-batches, where completions come in lumps, they are the mean over a cycle of batches.
    """

    time_s: float
    period_s: float
    target: Target
    offered_tuples: int
    admitted_tuples: int
    shed_tuples: int
    completed_tuples: int
    queued_tuples: int  # passed the shedder (by the share they came under), not completed
    queued_load_s: float  # real queues x load coefficient (thesis eq. 4.1)
    offered_load: float  # L, of everything offered, per second
    admitted_load: float  # the part of L that passed the shedder, per second
    cost_s: float  # c: seconds of pipeline time per admitted tuple
    delay_s: float | None  # the target's statistic over the tuples that completed; None: none did
    busy_s: float  # pipeline time spent on tuples in this period
    backlog: Backlog = Backlog()
    batches: tuple[BatchRecord, ...] = ()  # finished since the last decision (micro-batches)
    batch_running: bool = False
    prices: Prices | None = None  # of a micro-batch; None: not known yet, or no micro-batches
    headroom: float | None = None  # H: seconds of tuples per second; None: nobody says
    class_name: str = "default"
    query: str = ""  # whose gate; empty on an operator network, where classes are measured


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Delays:
    """How long the tuples of one batch took, from arrival to commit.

    `quantiles_s` are the delays at DELAY_SHARES of the tuples, the longest first; between them
    delays run linearly.
    """

    tuples: int
    mean_s: float
    quantiles_s: tuple[float, ...]


DELAY_SHARES = (0.0, 0.01, 0.05, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A batch of one query that has ended: what it cost, and how long its tuples took."""

    record: BatchRecord
    delays: tuple[Delays, ...] = ()  # one for each gate that had tuples in it


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """What a load manager saw, and what it said."""

    measurement: Measurement
    decision: Decision


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Where a query stands when it asks for its turn. Counts are since its first start."""

    query: str
    class_name: str
    time_s: float
    offered_tuples: int
    admitted_tuples: int
    shed_tuples: int
    completed_tuples: int
    backlog: Backlog
    ended: tuple[Ended, ...] = ()  # since the last report
    decided: tuple[Decided, ...] = ()  # since the last report
    prices: Prices | None = None  # as its gates have learned them
    wait_s: float = 0.0  # how long the answer may be held back until its turn comes
    overloaded: bool = False  # its batches have shown that something has to go
    gives_way: bool = False  # and its delay gives way, because no more data may
    held: bool = False  # it knows that it is to stand still


@dataclass(frozen=True, kw_only=True, slots=True)
class LawChoice:
    """A load manager by name, with what its parameters were given."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What the driver tells a query: its target, its turn and its share of the machine."""

    target: Target
    may_start: bool = True
    turn: float = 1.0  # batch-seconds per second that the query can use: one batch at a time
    spared: bool = False  # its class's load is within its share: it sheds nothing
    parallelism: int | None = None  # tasks of a batch on the cores that there are now
    law: LawChoice | None = None  # None: the one that the gate began with
    min_keep: float = 0.0  # of what a batch consumes; what the gate's own options say still holds
    most_keep: float = 1.0  # of what comes, for the sake of nodes behind this one
    plan_until_s: float | None = None  # the host's monotonic clock; None: for ever
    held: bool = False  # nothing is planned, also while the driver does not answer
    owned: Owned | None = None  # None: as the last offset says
    until: Positions | None = None  # no batch goes beyond; None: as far as there is


ADMIT_ALL = KeepFraction(fraction=1.0)

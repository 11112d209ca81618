"""One protocol for all scaling policies: a view in, wishes out.

A policy says which hosts have too much or too little to do. Whether and how that can be carried
out is the planner's business (plan.py); what it had to refuse comes back with the next call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spillway.cluster.views import ClusterView
from spillway.errors import require


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingSettings:
    """The three numbers a user sets (FUGU, section IV), and what the paper leaves open.

    The paper does not say how many consecutive violations it waits for nor how long its grace
    period is: we use 3 measurements (15 s at one measurement every 5 s) and 30 s.
    """

    lower: float = 0.3  # utilisation below which a host is underloaded
    upper: float = 0.8  # and above which it is overloaded
    target: float = 0.6  # down to which an overloaded host is relieved; hosts are filled to it
    consecutive: int = 3
    grace_s: float = 30.0
    min_hosts: int = 1
    max_hosts: int = 10

    def __post_init__(self) -> None:
        ordered = 0.0 <= self.lower < self.target <= self.upper <= 1.0
        values = (self.lower, self.target, self.upper)
        require(ordered, "(lower, target, upper) utilisation", values, "ascending within 0 to 1")
        require(self.consecutive >= 1, "consecutive violations", self.consecutive, "1 or more")
        require(self.grace_s >= 0.0, "grace period, in seconds,", self.grace_s, "0 or more")
        hosts = (self.min_hosts, self.max_hosts)
        require(1 <= hosts[0] <= hosts[1], "(fewest, most) hosts", hosts, "ascending from 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Relieve:
    """Scale out: move load off this host until it is down to `to_utilisation`."""

    host: str
    to_utilisation: float
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """Scale in: move everything off this host and stop it."""

    host: str
    reason: str


Wish = Relieve | Release


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What a policy wants. `demand_cores`: what operators want when that differs from what they
    use (a saturated host hides it); the planner then packs by it."""

    wishes: tuple[Wish, ...] = ()
    demand_cores: Mapping[str, float] = field(default_factory=dict)


class ScalingPolicy(Protocol):
    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        """`refused`: hosts whose wish of the last call could not be carried out."""
        ...

"""What the class scheduler knows of a class, and the protocol of a redistribution policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassUsage:
    """One class at the end of a redistribution cycle. Capacities are shares of the machine."""

    name: str
    priority: int
    capacity: float  # L_C: the share it has now
    original: float  # L_C0: the share that its priority gives it
    usage: float  # u = L / L_C; above 1 it must shed
    lend: float = 1.0  # the largest part of its original share that it lends (0 .. 1)

    @property
    def need(self) -> float:
        """The share that would carry its whole load."""
        return self.usage * self.capacity

    def demand(self) -> float:
        """What it lacks. The thesis prints the condition u < 1; it can only mean u > 1."""
        return max(0.0, self.need - self.capacity)

    def supply(self, reserve: float) -> float:
        """What it can give without becoming overloaded, `reserve` of its original share kept."""
        spare = self.capacity - self.need - reserve * self.original
        lendable = self.capacity - (1.0 - self.lend) * self.original
        return max(0.0, min(spare, lendable))


class Policy(Protocol):
    """New capacities from the usage of all classes; their sum does not change."""

    def __call__(self, classes: Sequence[ClassUsage]) -> Mapping[str, float]: ...


def original_shares(priorities: Mapping[str, int], total: float = 1.0) -> dict[str, float]:
    """CQC: shares in proportion to priority."""
    weight = sum(priorities.values())
    return {name: total * priority / weight for name, priority in priorities.items()}


def by_priority(classes: Sequence[ClassUsage]) -> list[ClassUsage]:
    """Highest priority first; equal priorities by name, so that runs repeat."""
    return sorted(classes, key=lambda c: (-c.priority, c.name))

"""Which operator runs next. Ready operators are the set bits of an integer.

A scheduler first gives its plan: the order of the operators (bit 0 is the first) and how many
tuples one activation of each may take. Then it picks a set bit, again and again. Finding the next
set bit costs the same however many operators are idle.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from spillway.errors import unknown_name
from spillway_lab.engine.network import Network

SchedulerName = Literal["round-robin", "weighted-round-robin", "highest-rate"]
Turn = tuple[int, int]  # operator index in the network, tuples per activation


class Scheduler(Protocol):
    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        """The operators in bit order, each with its turn."""
        ...

    def pick(self, ready: int) -> int:
        """One of the set bits of `ready`, which is never zero."""
        ...

    def charge(self, bit: int, spent_s: float) -> None:
        """Told after every activation: how much pipeline time it took."""
        ...


SchedulerOf = Callable[[], Scheduler]


class RoundRobin:
    """Everyone in turn, `batch_tuples` at most; Borealis and STREAM do this."""

    def __init__(self) -> None:
        self._last = -1

    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        return [(i, batch_tuples) for i in range(len(network.operators))]

    def pick(self, ready: int) -> int:
        later = ready >> (self._last + 1)
        if later:
            self._last += (later & -later).bit_length()
        else:
            self._last = (ready & -ready).bit_length() - 1
        return self._last

    def charge(self, bit: int, spent_s: float) -> None:
        """Turns are counted in tuples."""


class WeightedRoundRobin(RoundRobin):
    """Round robin in which a turn is as long as the operator's weight says (thesis 5.3.2.4)."""

    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        return [
            (i, max(1, round(batch_tuples * operator.weight)))
            for i, operator in enumerate(network.operators)
        ]


class HighestRate:
    """Always the ready operator whose branch puts out most results per second of its cost.

    Priority = results that a tuple here leads to / pipeline time that it needs until then.
    """

    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        results, time_s = _downstream(network)
        rate = [r / t if t > 0.0 else float("inf") for r, t in zip(results, time_s, strict=True)]
        order = sorted(range(len(rate)), key=lambda i: (-rate[i], i))
        return [(i, batch_tuples) for i in order]

    def pick(self, ready: int) -> int:
        return (ready & -ready).bit_length() - 1

    def charge(self, bit: int, spent_s: float) -> None:
        """Priorities do not depend on the past."""


def _downstream(network: Network) -> tuple[list[float], list[float]]:
    """Expected results and pipeline time of one tuple at each operator's input."""
    operators = network.operators
    results, time_s = [0.0] * len(operators), [0.0] * len(operators)
    for i in range(len(operators) - 1, -1, -1):
        passing = operators[i].results_per_tuple
        readers = network.readers(operators[i].name)
        results[i] = passing * (sum(results[r] for r in readers) if readers else 1.0)
        time_s[i] = operators[i].cost_s + passing * sum(time_s[r] for r in readers)
    return results, time_s


_SCHEDULERS: dict[str, type[RoundRobin] | type[HighestRate]] = {
    "round-robin": RoundRobin,
    "weighted-round-robin": WeightedRoundRobin,
    "highest-rate": HighestRate,
}


def make_scheduler(scheduler: SchedulerName | SchedulerOf) -> Scheduler:
    """A fresh one, by name or from whoever makes it: schedulers remember whose turn it was."""
    if not isinstance(scheduler, str):
        return scheduler()
    if scheduler not in _SCHEDULERS:
        raise unknown_name("scheduler", scheduler, _SCHEDULERS)
    return _SCHEDULERS[scheduler]()

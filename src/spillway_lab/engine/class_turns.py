"""CQC on the operator engine: whose turn it is, first among the classes, then inside one."""

from collections.abc import Mapping, Sequence

from spillway.classes.scheduler import ClassScheduler
from spillway.errors import require
from spillway_lab.engine.network import Network
from spillway_lab.engine.scheduling import HighestRate, Turn

ROUND_S = 0.02


class ClassTurns:
    """The class scheduler decides about classes, highest rate about the operators of one.

    A class that has its turn keeps the processor until its quota of a round is used up or its
    queues are empty. Its operators run in sweeps: all that were ready when the sweep began, highest
    rate first, each once. So the order is that of highest rate and nobody waits longer than one
    sweep; highest rate alone starves the rest of an overloaded class.
    """

    def __init__(self, quotas: Mapping[str, float], *, round_s: float = ROUND_S) -> None:
        require(round_s > 0.0, "round of the class scheduler, in seconds,", round_s, "above zero")
        self.classes = ClassScheduler(quotas, round_s=round_s)
        self._round_s = round_s
        self._masks: dict[str, int] = {}
        self._sweeps = dict.fromkeys(quotas, 0)  # who is still to run in the sweep of each class
        self._name = next(iter(quotas))
        self._mask = 0
        self._slice_s = 0.0
        self._spent_s = 0.0

    def plan(self, network: Network, batch_tuples: int) -> Sequence[Turn]:
        turns = HighestRate().plan(network, batch_tuples)
        for name in self.classes.quotas:
            self._masks[name] = sum(
                1 << bit
                for bit, (index, _) in enumerate(turns)
                if network.operators[index].class_name == name
            )
        return turns

    def pick(self, ready: int) -> int:
        own = ready & self._mask
        if not own or self._spent_s >= self._slice_s:
            own = ready & self._next_class(ready)
        sweep = self._sweeps[self._name] & own or own
        first = sweep & -sweep
        self._sweeps[self._name] = sweep ^ first
        return first.bit_length() - 1

    def charge(self, bit: int, spent_s: float) -> None:
        self._spent_s += spent_s

    def _next_class(self, ready: int) -> int:
        self.classes.charge(self._name, self._spent_s)
        name = self.classes.next([n for n, mask in self._masks.items() if ready & mask])
        assert name is not None  # `ready` is never zero
        self._name, self._mask, self._spent_s = name, self._masks[name], 0.0
        self._slice_s = self.classes.quotas[name] * self._round_s
        return self._mask

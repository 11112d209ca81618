"""What moving an operator costs: two protocols to compare."""

from dataclasses import dataclass
from typing import Protocol


class MoveProtocol(Protocol):
    """`pauses`: predecessor and operator stand still; otherwise both hosts work meanwhile."""

    @property
    def pauses(self) -> bool: ...

    def duration_s(self, state_mb: float, window_s: float) -> float:
        """`window_s` is 0 for an operator without a window."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class PauseAndReplay:
    """FUGU, section II: pause the predecessor, extract the state, move it, replay it, resume.

    Duration = handshake + state / transfer rate + state / replay rate. What arrives meanwhile
    waits at the predecessor. Moves off one host follow one another: they share its link.
    """

    handshake_s: float = 0.25
    transfer_mb_per_s: float = 25.0
    replay_mb_per_s: float = 10.0
    pauses: bool = True

    def duration_s(self, state_mb: float, window_s: float) -> float:
        return (
            self.handshake_s + state_mb / self.transfer_mb_per_s + state_mb / self.replay_mb_per_s
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class UniMiCo:
    """Thesis chapter 7: no state travels and nothing stops. The new copy starts with the first
    window after the migration timestamp while the old one finishes its windows, so for the length
    of a window both hosts do the work, and the old host is relieved only then."""

    handshake_s: float = 0.25
    pauses: bool = False

    def duration_s(self, state_mb: float, window_s: float) -> float:
        return self.handshake_s + window_s

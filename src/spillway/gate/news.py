"""What a gate has to tell its driver."""

from dataclasses import dataclass, field

from spillway.model import Decided, Ended

_KEPT = 100  # decisions and batches, while the driver does not answer


@dataclass(kw_only=True)
class News:
    """Batches and decisions since the driver was told last."""

    completed_tuples: int = 0  # since the first start
    ended: list[Ended] = field(default_factory=list)
    decided: list[Decided] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.ended or self.decided)

    def of_batch(self, ended: Ended) -> None:
        self.ended = [*self.ended[1 - _KEPT :], ended]

    def of_decision(self, decided: Decided) -> None:
        self.decided = [*self.decided[1 - _KEPT :], decided]

    def told(self) -> None:
        self.ended, self.decided = [], []

"""How the papers' engine runs a network, and which delay is counted."""

from dataclasses import dataclass
from typing import Literal

from spillway.errors import require
from spillway_lab.engine.scheduling import SchedulerName, SchedulerOf

DelayOf = Literal["every-tuple", "output", "oldest-input"]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How the engine runs a network. All prices are seconds of pipeline time."""

    headroom: float = 1.0  # share of a second that goes to tuples and to the engine itself
    batch_tuples: int = 50  # an activation takes at most this many
    activation_s: float = 0.0  # fixed price of an activation; part of an operator's measured cost
    overhead_s: float = 0.0  # scheduling, per activation; in nobody's measured cost
    queue_tuples: int = 500  # capacity of an operator's queue: a full one blocks upstream
    shed_cost_s: float = 0.0  # c_s: bookkeeping for a tuple that is looked at and dropped
    max_shed: float = 0.99
    scheduler: SchedulerName | SchedulerOf = "round-robin"

    def __post_init__(self) -> None:
        require(0.0 < self.headroom <= 1.0, "headroom", self.headroom, "above 0, at most 1")
        require(self.batch_tuples >= 1, "batch size", self.batch_tuples, "at least 1 tuple")
        require(self.queue_tuples >= 1, "queue capacity", self.queue_tuples, "at least 1 tuple")
        require(0.0 <= self.max_shed <= 1.0, "largest shed fraction", self.max_shed, "0 to 1")
        for name in ("activation_s", "overhead_s", "shed_cost_s"):
            value = getattr(self, name)
            require(value >= 0.0, f"{name} of the engine", value, "zero or above")

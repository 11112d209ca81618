"""What nodes behind this one would drop is dropped here, before it costs anything."""

from dataclasses import dataclass, replace

from spillway.gate.arrivals import Arrivals
from spillway.gate.cutting import Given
from spillway.gate.entry import EntryShare
from spillway.gate.options import GateOptions
from spillway.load.shares import LEAST_KEPT
from spillway.model import Decision, KeepFraction, Order


@dataclass(frozen=True, slots=True)
class Ahead:
    """The share of all that comes that may be kept for the sake of others."""

    most_keep: float

    @classmethod
    def of(cls, order: Order, options: GateOptions) -> "Ahead":
        """What the user wants kept is kept, and always a little, so that its cost is known."""
        return cls(max(order.most_keep, LEAST_KEPT, order.min_keep, options.min_keep))

    def bounded(self, decision: Decision, waiting: Arrivals, entry: EntryShare | None) -> Decision:
        """The decision, if it keeps no more; `entry`: of a law of a period."""
        action = decision.action
        if isinstance(action, KeepFraction):
            kept = action.fraction if entry is None else entry.of(waiting)
        else:
            kept = action.tuples / max(1, waiting.tuples)
        if kept <= self.most_keep:
            return decision
        reason = f"keeps {self.most_keep:.1%} for the sake of nodes behind this one"
        return replace(decision, action=KeepFraction(fraction=self.most_keep), reason=reason)

    def within(self, given: Given) -> Given:
        """Also where a batch is cut otherwise than was decided."""
        return replace(given, cut=given.cut.keeping_at_most(self.most_keep))


def alone(order: Order) -> Order:
    """What still holds when nobody answers: nothing is dropped for others that may be gone."""
    return replace(order, may_start=True, most_keep=1.0)

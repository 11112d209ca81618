"""One decision in the making: actions asked for so far, and what was withheld."""

from spillway.cluster.actions import (
    ClusterAction,
    Decouple,
    ExpectedEffect,
    MoveQuery,
    Quantity,
)
from spillway.cluster.coordinator.directive import CoordinatorSettings, Withheld
from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.coordinator.room import Closed, Place, Room
from spillway.cluster.coordinator.vetoes import Situation, first_veto
from spillway.cluster.views import ClusterView, QueryView


class Round:
    def __init__(self, view: ClusterView, memory: Memory, settings: CoordinatorSettings) -> None:
        self.view, self.memory, self.settings = view, memory, settings
        self.room = Room(view, memory)
        self.actions: list[ClusterAction] = []
        self.withheld: list[Withheld] = []
        self.relieving: set[str] = set()  # nodes that are to lose queries: they take none
        self.unplaced_cores = 0.0  # found no place anywhere, whatever the reason
        self._now = Situation(view=view, memory=memory, settings=settings, alive=len(memory.nodes))

    @property
    def closed(self) -> Closed:
        """Nodes that take nothing in: being emptied, too full, or still to lose queries."""
        return self.room.closed(self.memory.going | self.relieving, above=self.settings.upper)

    @property
    def moves_left(self) -> int:
        return self._now.moves_left

    def veto(self, action: ClusterAction) -> str | None:
        return first_veto(action, self._now)

    def ask(self, action: ClusterAction, subject: str) -> bool:
        """Ask for an action unless something speaks against it; both are on record."""
        reason = self.veto(action)
        if reason is not None:
            self.withheld.append(Withheld(subject=subject, reason=reason, action=action))
            return False
        self.actions.append(action)
        self._now.note(action)
        return True

    def infeasible(self, subject: str, reason: str) -> None:
        self.withheld.append(Withheld(subject=subject, reason=reason))

    def movable(self, query: QueryView, source: str) -> str | None:
        """Why a query cannot leave now, wherever to; None when it can."""
        effect = self.effect("utilisation", source, 0.0, 0.0)
        probe = MoveQuery(
            query=query.name, source=source, destination="", reason="", expected=effect
        )
        return self.veto(probe)

    def move(self, query: QueryView, source: str, place: Place, why: str) -> bool:
        """Decouple what the query shares with those that stay, then move it."""
        before = self.room.load(source)
        cores = self.view.host(source).capacity.cpu_cores
        after = before - self.room.relief_cores(query, source) / cores
        action = MoveQuery(
            query=query.name,
            source=source,
            destination=place.node,
            reason=f"{why}; {_why_there(place)}",
            expected=self.effect("utilisation", source, before, after),
        )
        shared = self.room.shared_parts(query, source)
        at = len(self.actions)
        if not self.ask(action, query.name):
            return False
        self.actions[at:at] = [
            Decouple(
                operator=op.name,
                query=query.name,
                node=source,
                reason=f"{query.name} leaves and {self.room.users(op) - 1} other"
                " queries still use it",
                expected=self.effect("utilisation", source, before, before),
            )
            for op in shared
        ]
        self.room.take(query, source, place.node)
        return True

    def effect(
        self, quantity: Quantity, subject: str, before: float, after: float
    ) -> ExpectedEffect:
        return ExpectedEffect(
            quantity=quantity,
            subject=subject,
            before=before,
            after=after,
            within_s=self.settings.effect_s,
        )


def _why_there(place: Place) -> str:
    if place.displaces:
        return f"{place.node} has room at the cost of lower priorities"
    if place.shared_cores > 0.0:
        return f"{place.node} already runs {place.shared_cores:.2f} cores of it"
    return f"{place.node} is the fullest with room"

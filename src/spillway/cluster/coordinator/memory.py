"""The passive step: what the coordinator asked for, compared with what the reports show.

Nothing is decided here. Actions are under way until a report shows them done; what does not appear
in time is given up. All times are those of the reports.
"""

from dataclasses import dataclass

from spillway.cluster.actions import ClusterAction, MoveQuery, StartNode, StopNode
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.views import ClusterView


@dataclass(frozen=True, kw_only=True, slots=True)
class UnderWay:
    """A migration that was asked for and is not finished."""

    source: str
    destination: str
    asked_s: float


class Memory:
    """Between two rounds of reports."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._settings = settings
        self.moves: dict[str, UnderWay] = {}  # by query
        self.starts: dict[str, float] = {}  # node -> when it was asked for
        self.stops: dict[str, float] = {}
        self.started_s: dict[str, float] = {}  # node that was asked for -> when it ran
        self.moved_s: dict[str, float] = {}  # query -> when its last move ended
        self.emptying: set[str] = set()
        self.overloaded_for: dict[str, int] = {}
        self.idle_for: dict[str, int] = {}

    def sync(self, view: ClusterView) -> tuple[str, ...]:
        """Take the reports over as the truth; returns what became of earlier actions."""
        notes = [*self._sync_starts(view), *self._sync_moves(view)]
        names = {host.name for host in view.hosts}
        self.emptying &= names
        self.stops = {
            node: asked_s
            for node, asked_s in self.stops.items()
            if node in names and view.time_s - asked_s <= self._settings.give_up_s
        }
        return tuple(notes)

    def count(self, load: dict[str, float]) -> None:
        """Reports in a row that a node has been overloaded or idle."""
        upper, lower = self._settings.upper, self._settings.lower
        over, idle = self.overloaded_for, self.idle_for
        self.overloaded_for = {n: over.get(n, 0) + 1 if v > upper else 0 for n, v in load.items()}
        self.idle_for = {n: idle.get(n, 0) + 1 if v < lower else 0 for n, v in load.items()}

    def expect(self, action: ClusterAction, now_s: float) -> None:
        """Remember an action that is asked for now."""
        if isinstance(action, StartNode):
            self.starts[action.node] = now_s
        elif isinstance(action, StopNode):
            self.stops[action.node] = now_s
        elif isinstance(action, MoveQuery):
            self.moves[action.query] = UnderWay(
                source=action.source, destination=action.destination, asked_s=now_s
            )

    def _sync_starts(self, view: ClusterView) -> list[str]:
        notes = []
        shown = {host.name for host in view.hosts}
        running = {host.name for host in view.running}
        for node, asked_s in list(self.starts.items()):
            if node in running:
                notes.append(f"{node} runs, {view.time_s - asked_s:g} s after it was asked for")
                self.started_s[node] = view.time_s
                del self.starts[node]
            elif node not in shown and view.time_s - asked_s > self._settings.give_up_s:
                notes.append(f"{node} did not start within {self._settings.give_up_s:g} s")
                del self.starts[node]
        self.started_s = {node: s for node, s in self.started_s.items() if node in shown}
        return notes

    def _sync_moves(self, view: ClusterView) -> list[str]:
        notes = []
        known = {query.name: query for query in view.queries}
        for name, move in list(self.moves.items()):
            query = known.get(name)
            if query is None:
                outcome = "is gone"
            elif not query.migrating and _hosts(view, query.operators) == {move.destination}:
                outcome = f"moved from {move.source} to {move.destination}"
                self.moved_s[name] = view.time_s
            elif view.time_s - move.asked_s > self._settings.give_up_s and not query.migrating:
                outcome = f"did not reach {move.destination} in {self._settings.give_up_s:g} s"
                self.moved_s[name] = view.time_s
            else:
                continue
            notes.append(f"{name} {outcome}")
            del self.moves[name]
        return notes


def _hosts(view: ClusterView, operators: tuple[str, ...]) -> set[str]:
    return {view.host_of[name] for name in operators if name in view.host_of}

"""The passive step: what the coordinator asked for, compared with what the reports show.

Nothing is decided here. Actions are under way until a report shows them done; what does not appear
in time is given up. All times are those of the reports.
"""

from dataclasses import dataclass
from re import fullmatch

from spillway.cluster.actions import ClusterAction, MoveQuery, StartNode
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.coordinator.recent import Recent
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
        self.seen_s: dict[str, float] = {}  # node -> its last report; forgotten when it is given up
        self.started_s: dict[str, float] = {}  # node that was asked for -> when it ran
        self.moved_s: dict[str, float] = {}  # query -> when its last move ended
        self.emptying: set[str] = set()
        self.overloaded_for: dict[str, int] = {}
        self.idle_for: dict[str, int] = {}
        self.recent = Recent()
        self.hold_s = settings.hold_s  # with prices: for as long as it pays
        self.saved = 0.0  # what shedding has cost beyond what a node would have
        self.last_s: float | None = None
        self.first_s: float | None = None
        self._highest = 0  # number of the newest node

    @property
    def nodes(self) -> set[str]:
        """Alive as far as is known: a node whose report is missing is not gone yet."""
        return self.seen_s.keys() | self.starts.keys()

    @property
    def going(self) -> set[str]:
        """Nodes that take nothing in any more."""
        return self.emptying | self.stops.keys()

    def fresh_name(self) -> str:
        """Never one that was used before: a silent node may come back under its own."""
        self._highest += 1
        return f"node-{self._highest}"

    def return_name(self) -> None:
        """The newest one was not used."""
        self._highest -= 1

    def sync(self, view: ClusterView) -> tuple[str, ...]:
        """Take the reports over as the truth; returns what became of earlier actions."""
        self.hold_s = self._settings.held_s(view)
        self.first_s = view.time_s if self.first_s is None else self.first_s
        notes = [*self._sync_nodes(view), *self._sync_starts(view), *self._sync_moves(view)]
        self.emptying &= self.seen_s.keys() & self._being_emptied(view)
        self.stops = {n: s for n, s in self.stops.items() if not self._late(view, s)}
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
        elif isinstance(action, MoveQuery):
            self.moves[action.query] = UnderWay(
                source=action.source, destination=action.destination, asked_s=now_s
            )

    def _late(self, view: ClusterView, since_s: float) -> bool:
        return view.time_s - since_s > self._settings.give_up_s

    def _sync_nodes(self, view: ClusterView) -> list[str]:
        """A node that was to stop and reports no more has stopped; any other one is missing."""
        shown = {host.name for host in view.hosts if host.state != "pinned"}
        for name in shown:
            self.seen_s[name] = view.time_s
            if number := fullmatch(r"node-(\d+)", name):
                self._highest = max(self._highest, int(number[1]))
        missing = self.seen_s.keys() - shown
        lost = sorted(n for n in missing - self.stops.keys() if self._late(view, self.seen_s[n]))
        for name in {*lost, *(missing & self.stops.keys())}:
            del self.seen_s[name]
            self.stops.pop(name, None)
        self.started_s = {n: s for n, s in self.started_s.items() if n in self.seen_s}
        return [f"{name} has not reported for {self._settings.give_up_s:g} s" for name in lost]

    def _being_emptied(self, view: ClusterView) -> set[str]:
        """Of the nodes to be emptied, those that are not stuck: empty, leaving, or unheard of."""
        leaving = {move.source for move in self.moves.values()}
        full = {host.name for host in view.hosts if host.operators}
        return {node for node in self.emptying if node in leaving or node not in full}

    def _sync_starts(self, view: ClusterView) -> list[str]:
        notes = []
        shown = {host.name for host in view.hosts}
        running = {host.name for host in view.running}
        for node, asked_s in list(self.starts.items()):
            if node in running:
                notes.append(f"{node} runs, {view.time_s - asked_s:g} s after it was asked for")
                self.started_s[node] = view.time_s
                del self.starts[node]
            elif node not in shown and self._late(view, asked_s):
                notes.append(f"{node} did not start within {self._settings.give_up_s:g} s")
                del self.starts[node]
        return notes

    def _sync_moves(self, view: ClusterView) -> list[str]:
        """A move that hangs is given up too: its query is left alone, the others go on."""
        notes = []
        known = {query.name: query for query in view.queries}
        for name, move in list(self.moves.items()):
            query = known.get(name)
            if query is None:
                outcome = "is gone"
            elif not query.migrating and _hosts(view, query.operators) == {move.destination}:
                outcome = f"moved from {move.source} to {move.destination}"
                self.moved_s[name] = view.time_s
            elif self._late(view, move.asked_s):
                outcome = f"did not reach {move.destination} in {self._settings.give_up_s:g} s"
                outcome += " and is still on the move" if query.migrating else ""
                self.moved_s[name] = view.time_s
            else:
                continue
            notes.append(f"{name} {outcome}")
            del self.moves[name]
        return notes


def _hosts(view: ClusterView, operators: tuple[str, ...]) -> set[str]:
    return {view.host_of[name] for name in operators if name in view.host_of}

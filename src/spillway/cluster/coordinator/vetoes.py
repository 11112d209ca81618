"""Reasons not to do what is wanted. Each veto is one pure function; the first that speaks wins."""

from collections.abc import Callable
from dataclasses import dataclass, field

from spillway.cluster.actions import ClusterAction, MoveQuery, StartNode, StopNode
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.views import ClusterView


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What a veto may look at. What this decision asks for already counts as under way."""

    view: ClusterView
    memory: Memory
    settings: CoordinatorSettings
    alive: int  # nodes before this decision
    starting: set[str] = field(default_factory=set)
    stopping: set[str] = field(default_factory=set)
    moving: set[str] = field(default_factory=set)

    @property
    def moves_left(self) -> int:
        return self.settings.max_moves - len(self.memory.moves) - len(self.moving)

    def note(self, action: ClusterAction) -> None:
        if isinstance(action, StartNode):
            self.starting.add(action.node)
        elif isinstance(action, StopNode):
            self.stopping.add(action.node)
        elif isinstance(action, MoveQuery):
            self.moving.add(action.query)


Veto = Callable[[ClusterAction, Situation], str | None]


def budget(action: ClusterAction, now: Situation) -> str | None:
    """Nodes that run, start or were asked for may not exceed what is paid for."""
    if not isinstance(action, StartNode):
        return None
    nodes = now.alive + len(now.starting)
    if nodes < now.settings.max_nodes:
        return None
    return f"budget: {nodes} of {now.settings.max_nodes} nodes are in use"


def prices(action: ClusterAction, now: Situation) -> str | None:
    """Ski-rental: shed until that has cost as much as the node will, then start it."""
    if not isinstance(action, StartNode) or now.settings.prices is None:
        return None
    node = now.settings.prices.node(now.memory.hold_s)
    saved = now.memory.saved - node * len(now.starting)
    if saved >= node:
        return None
    return f"prices: shedding has cost {saved:.3g} so far, a node costs {node:.3g}"


def minimum_nodes(action: ClusterAction, now: Situation) -> str | None:
    if not isinstance(action, StopNode):
        return None
    going = now.stopping | now.memory.emptying | {action.node}
    if len(now.view.running) - len(going) >= now.settings.min_nodes:
        return None
    return f"minimum: at least {now.settings.min_nodes} nodes must stay"


def cooldown(action: ClusterAction, now: Situation) -> str | None:
    """A query that just moved stays; a node that just started stays."""
    if isinstance(action, MoveQuery):
        last_s, what = now.memory.moved_s.get(action.query), "it moved"
    elif isinstance(action, StopNode):
        last_s, what = now.memory.started_s.get(action.node), "it started"
    else:
        return None
    if last_s is None or now.view.time_s - last_s >= now.settings.cooldown_s:
        return None
    ago_s = now.view.time_s - last_s
    return f"cool-down: {what} {ago_s:g} s ago, of {now.settings.cooldown_s:g} s"


def under_way(action: ClusterAction, now: Situation) -> str | None:
    """A query on the move is left alone, and only so many move at once."""
    if not isinstance(action, MoveQuery):
        return None
    if action.query in now.memory.moves or now.view.query(action.query).migrating:
        return "it is on the move"
    if now.moves_left <= 0:
        return f"{now.settings.max_moves} of {now.settings.max_moves} migrations are under way"
    return None


VETOES: tuple[Veto, ...] = (budget, prices, minimum_nodes, cooldown, under_way)


def first_veto(action: ClusterAction, now: Situation) -> str | None:
    return next((reason for veto in VETOES if (reason := veto(action, now))), None)

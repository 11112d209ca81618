"""Reasons not to do what is wanted. Each veto is one pure function; the first that speaks wins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spillway.cluster.actions import ClusterAction, MoveQuery, StartNode, StopNode
from spillway.cluster.coordinator.directive import CoordinatorSettings
from spillway.cluster.coordinator.memory import Memory
from spillway.cluster.views import ClusterView


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What a veto may look at. `asked`: what this decision asks for already."""

    view: ClusterView
    memory: Memory
    settings: CoordinatorSettings
    asked: Sequence[ClusterAction] = ()


Veto = Callable[[ClusterAction, Situation], str | None]


def budget(action: ClusterAction, now: Situation) -> str | None:
    """Nodes that run, start or were asked for may not exceed what is paid for."""
    if not isinstance(action, StartNode):
        return None
    asked = {a.node for a in now.asked if isinstance(a, StartNode)}
    nodes = {host.name for host in now.view.hosts} | set(now.memory.starts) | asked
    if len(nodes) < now.settings.max_nodes:
        return None
    return f"budget: {len(nodes)} of {now.settings.max_nodes} nodes are in use"


def minimum_nodes(action: ClusterAction, now: Situation) -> str | None:
    if not isinstance(action, StopNode):
        return None
    stopping = {a.node for a in now.asked if isinstance(a, StopNode)}
    going = stopping | now.memory.emptying | {action.node}
    staying = [host for host in now.view.running if host.name not in going]
    if len(staying) >= now.settings.min_nodes:
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
    moving = len(now.memory.moves) + sum(isinstance(a, MoveQuery) for a in now.asked)
    if moving >= now.settings.max_moves:
        return f"{moving} of {now.settings.max_moves} migrations are under way"
    return None


VETOES: tuple[Veto, ...] = (budget, minimum_nodes, cooldown, under_way)


def first_veto(action: ClusterAction, now: Situation) -> str | None:
    return next((reason for veto in VETOES if (reason := veto(action, now))), None)

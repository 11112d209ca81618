"""From wishes to actions: what can be carried out, and what has to be refused.

Operators of overloaded hosts go first, to hosts that are not overloaded and, when those are full,
to new nodes. Then underloaded hosts are released, the idlest first; a release that does not find
room for every operator is cancelled as a whole and moves nothing. Hosts are filled up to the
target utilisation; an operator heavier than that gets a node of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spillway.cluster.actions import (
    ClusterAction,
    ExpectedEffect,
    MoveOperator,
    StartNode,
    StopNode,
)
from spillway.cluster.placement import (
    Bin,
    Placement,
    bin_of,
    empty_bin,
    first_fit_decreasing,
    neighbours_of,
    operators_to_move,
)
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wish, Wishes
from spillway.cluster.views import ClusterView, HostView, OperatorView, Resources
from spillway.errors import SpillwayError


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    actions: tuple[ClusterAction, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)  # host -> why not


def plan(wishes: Wishes, view: ClusterView, settings: ScalingSettings, new_nodes: int) -> Plan:
    """Carry out what is possible; `new_nodes` is how many nodes may be started at most."""
    if not wishes.wishes:
        return Plan()
    seen = _with_demand(view, wishes.demand_cores)
    return _Planner(seen, settings, new_nodes).run(wishes)


def _with_demand(view: ClusterView, demand: Mapping[str, float]) -> ClusterView:
    """The view with CPU use replaced by what the operators want."""
    if not demand:
        return view

    def wanting(op: OperatorView) -> OperatorView:
        cpu = demand.get(op.name, op.use.cpu_cores)
        return replace(op, use=replace(op.use, cpu_cores=cpu))

    hosts = tuple(
        replace(host, operators=tuple(wanting(op) for op in host.operators)) for host in view.hosts
    )
    return replace(view, hosts=hosts)


class _Planner:
    """One plan in the making: the room that is left and the actions so far."""

    def __init__(self, view: ClusterView, settings: ScalingSettings, new_nodes: int) -> None:
        self._view = view
        self._settings = settings
        self._new_nodes = new_nodes
        self._links = neighbours_of(view.operators.values())
        self._moving = frozenset(
            name for query in view.queries if query.migrating for name in query.operators
        )
        self._actions: list[ClusterAction] = []
        self._refused: dict[str, str] = {}

    def run(self, wishes: Wishes) -> Plan:
        relieve = [wish for wish in wishes.wishes if isinstance(wish, Relieve)]
        release = [wish for wish in wishes.wishes if isinstance(wish, Release)]
        sources = {wish.host for wish in wishes.wishes}
        room = [
            bin_of(host, self._settings.target)
            for host in self._view.running + self._view.starting
            if host.name not in sources
        ]
        room = self._relieve(relieve, room)
        self._release(release, room)
        return Plan(actions=tuple(self._actions), refused=self._refused)

    def _relieve(self, wishes: Sequence[Relieve], room: list[Bin]) -> list[Bin]:
        leaving = {
            op.name: (op, wish)
            for wish in wishes
            for op in operators_to_move(
                self._view.host(wish.host), wish.to_utilisation, self._moving
            )
        }
        operators = [op for op, _ in leaving.values()]
        placement = first_fit_decreasing(operators, room, self._links)
        placement, started = self._open_nodes(placement)
        self._actions += [self._start(name, wishes[0].reason) for name in started]
        for wish in wishes:
            moved = [
                op
                for op, cause in leaving.values()
                if cause is wish and op.name in placement.assigned
            ]
            self._actions += self._moves(moved, placement.assigned, wish)
            if not moved:
                self._refused[wish.host] = "no host has room and no node may be started"
        return list(placement.bins)

    def _open_nodes(self, placement: Placement) -> tuple[Placement, list[str]]:
        """Start nodes one at a time until everything is placed or none may be started."""
        started: list[str] = []
        while placement.unplaced and len(started) < self._new_nodes:
            name = _fresh_name(self._view, started)
            fresh = empty_bin(name, _template(self._view), self._settings.target)
            heaviest = max(op.use.cpu_cores for op in placement.unplaced)
            if heaviest > fresh.free.cpu_cores:  # a node of its own
                fresh = replace(fresh, free=replace(fresh.free, cpu_cores=heaviest))
            more = first_fit_decreasing(placement.unplaced, [fresh], self._links)
            if not more.assigned:
                break
            started.append(name)
            placement = Placement(
                assigned={**placement.assigned, **more.assigned},
                unplaced=more.unplaced,
                bins=placement.bins + more.bins,
            )
        return placement, started

    def _release(self, wishes: Sequence[Release], room: list[Bin]) -> None:
        remaining = len(self._view.running)
        by_load = sorted(wishes, key=lambda wish: self._view.host(wish.host).utilisation)
        waiting = {
            wish.host: bin_of(self._view.host(wish.host), self._settings.target) for wish in by_load
        }
        for wish in by_load:
            if wish.host not in waiting:  # took in another's operators: it stays for now
                continue
            own = waiting.pop(wish.host)
            host = self._view.host(wish.host)
            placement = self._find_room(host, room, list(waiting.values()))
            failure = self._release_failure(host, placement, remaining)
            if failure:
                self._refused[wish.host] = failure
                room.append(own)
                continue
            remaining -= 1
            waiting = {name: one for name, one in waiting.items() if one in placement.bins}
            room = [one for one in placement.bins if one.name not in waiting]
            self._actions += self._moves(host.operators, placement.assigned, wish)
            self._actions.append(self._stop(host, wish.reason, remaining))

    def _find_room(self, host: HostView, room: list[Bin], waiting: list[Bin]) -> Placement:
        """Hosts that want to go themselves are used only when the others have no room."""
        placement = first_fit_decreasing(host.operators, room, self._links)
        if placement.unplaced:
            return first_fit_decreasing(host.operators, room + waiting, self._links)
        return replace(placement, bins=placement.bins + tuple(waiting))

    def _release_failure(self, host: HostView, placement: Placement, remaining: int) -> str | None:
        if remaining <= self._settings.min_hosts:
            return f"at least {self._settings.min_hosts} host must remain"
        if any(op.name in self._moving for op in host.operators):
            return "one of its operators is on the move"
        if placement.unplaced:
            return f"no room for {len(placement.unplaced)} of its operators"
        return None

    def _moves(
        self, operators: Sequence[OperatorView], assigned: Mapping[str, str], wish: Wish
    ) -> list[MoveOperator]:
        """Moves off one host; together they have one expected effect."""
        host = self._view.host(wish.host)
        moved_cores = sum(op.use.cpu_cores for op in operators)
        expected = ExpectedEffect(
            quantity="utilisation",
            subject=host.name,
            before=host.utilisation,
            after=host.utilisation - moved_cores / host.capacity.cpu_cores,
            within_s=self._settings.grace_s,
        )
        return [
            MoveOperator(
                operator=op.name,
                source=host.name,
                destination=assigned[op.name],
                reason=wish.reason,
                expected=expected,
            )
            for op in operators
        ]

    def _start(self, name: str, reason: str) -> StartNode:
        count = float(len(self._view.running))
        return StartNode(node=name, reason=reason, expected=self._hosts(count, count + 1.0))

    def _stop(self, host: HostView, reason: str, remaining: int) -> StopNode:
        expected = self._hosts(float(remaining + 1), float(remaining))
        return StopNode(node=host.name, reason=reason, expected=expected)

    def _hosts(self, before: float, after: float) -> ExpectedEffect:
        return ExpectedEffect(
            quantity="hosts",
            subject="cluster",
            before=before,
            after=after,
            within_s=self._settings.grace_s,
        )


def _fresh_name(view: ClusterView, started: Sequence[str]) -> str:
    taken = {host.name for host in view.hosts} | set(started)
    number = len(taken) + 1
    while f"host-{number}" in taken:
        number += 1
    return f"host-{number}"


def _template(view: ClusterView) -> Resources:
    template = view.host_template
    if template is None and view.hosts:
        template = view.hosts[0].capacity
    if template is None:
        raise SpillwayError("the cluster view has no host and no template: a new node has no size")
    return template

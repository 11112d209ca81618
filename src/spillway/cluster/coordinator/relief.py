"""Overloaded nodes: what leaves, where it goes, and how many nodes have to be started.

What leaves: lower priority first, stateless before stateful, and of those the one query that is
just heavy enough, or else the heaviest. Nodes where a higher priority suffers choose first.

Where it goes, in this order: nodes with room below the target; new nodes; when the budget is spent,
nodes with room below the upper threshold; and for what matters more than what runs there, nodes
with room at the cost of lower priorities.
"""

from math import ceil

from spillway.cluster.actions import StartNode
from spillway.cluster.coordinator.room import Place
from spillway.cluster.coordinator.round import Round
from spillway.cluster.views import HostView, QueryView


def relieve(round_: Round) -> None:
    """Nodes that have been overloaded long enough, the most important first."""
    memory, settings = round_.memory, round_.settings
    hosts = [
        host
        for host in round_.view.running
        if memory.overloaded_for.get(host.name, 0) >= settings.patience_reports
    ]
    hosts.sort(key=lambda h: (-_suffering_priority(h), -round_.room.load(h.name), h.name))
    unplaced = [(h, _relieve_host(round_, h, settings.target)) for h in hosts]
    without_place = {host.name: cores for host, cores in unplaced if cores > 0.0}
    if without_place and not _start_nodes(round_, without_place):
        for host in (host for host, cores in unplaced if cores > 0.0):
            _relieve_host(round_, host, settings.upper)
            _displace(round_, host)


def _suffering_priority(host: HostView) -> int:
    """The highest priority that sheds or misses its target on a node."""
    suffering = (c.priority for c in host.classes if c.shed_tuples_per_s > 0.0 or c.violated)
    return max(suffering, default=0)


def _relieve_host(round_: Round, host: HostView, fill_to: float) -> float:
    """Move queries off until the node is at its target; returns cores that found no place."""
    room, node = round_.room, host.name
    cores = host.capacity.cpu_cores
    load = room.load(node)
    reports = round_.memory.overloaded_for[node]
    why = f"{node} at {load:.2f} (above {round_.settings.upper:g}) for {reports} reports"
    if round_.moves_left <= 0:
        round_.infeasible(node, f"{why}: all {round_.settings.max_moves} migrations are in use")
        return 0.0
    unplaced = 0.0
    candidates = [query for query in room.queries_on(node) if _may_leave(round_, query, node)]
    while (excess := (room.load(node) - round_.settings.target) * cores - unplaced) > 1e-9:
        query = _next_to_leave(round_, candidates, node, excess)
        if query is None:
            round_.infeasible(node, f"{why}: no further query can leave")
            break
        candidates.remove(query)
        place = room.best_place(query, node, round_.closed, fill_to)
        if place is None:
            unplaced += room.relief_cores(query, node)
        elif not round_.move(query, node, place, f"{why}: {_rank(query)}"):
            break
    return unplaced


def _may_leave(round_: Round, query: QueryView, node: str) -> bool:
    reason = round_.movable(query, node)
    if reason is not None:
        round_.infeasible(query.name, f"cannot leave {node}: {reason}")
    return reason is None


def _next_to_leave(
    round_: Round, candidates: list[QueryView], node: str, excess: float
) -> QueryView | None:
    room = round_.room
    useful = [query for query in candidates if room.relief_cores(query, node) > 1e-9]
    if not useful:
        return None
    rank = min((query.priority, room.stateful(query, node)) for query in useful)
    first = [q for q in useful if (q.priority, room.stateful(q, node)) == rank]

    def badness(query: QueryView) -> tuple[bool, float, str]:
        relief = room.relief_cores(query, node)
        enough = relief >= excess
        return (not enough, relief if enough else -relief, query.name)

    return min(first, key=badness)


def _rank(query: QueryView) -> str:
    return f"{query.name} is the least important there (priority {query.priority})"


def _start_nodes(round_: Round, unplaced: dict[str, float]) -> bool:
    """Enough nodes for what found no place, less what is already coming; False when vetoed."""
    _reopen(round_, unplaced)
    view, settings = round_.view, round_.settings
    template = view.host_template or view.running[0].capacity
    cores = sum(unplaced.values())
    coming = len(set(round_.memory.starts) | {host.name for host in view.starting})
    wanted = ceil(cores / (settings.target * template.cpu_cores)) - coming
    nodes = len(view.running) + coming
    for number in range(wanted):
        action = StartNode(
            node=_fresh_name(round_),
            reason=f"{cores:.2f} cores of {', '.join(sorted(unplaced))} find no place",
            expected=round_.effect("hosts", "cluster", nodes + number, nodes + number + 1),
        )
        if not round_.ask(action, "cluster"):
            return False
    return True


def _reopen(round_: Round, unplaced: dict[str, float]) -> None:
    """Nodes about to be released are wanted again; they take queries from the next report on."""
    wanted_again = round_.memory.emptying - set(round_.memory.stops)
    for node in sorted(wanted_again):
        cores = sum(unplaced.values())
        round_.infeasible(node, f"release given up: {cores:.2f} cores find no place elsewhere")
    round_.memory.emptying -= wanted_again


def _displace(round_: Round, host: HostView) -> None:
    """An important query may go where only lower priorities stand in its way.

    There the quotas then shed them in its place: priorities hold across nodes. Not when a lower
    priority on the same node still has something to give: then quotas are enough.
    """
    room, node, settings = round_.room, host.name, round_.settings
    suffering = _suffering_priority(host)
    at_least = sum(c.load for c in host.classes if c.priority >= suffering)
    mine = [q for q in room.queries_on(node) if q.priority == suffering and at_least > 1.0]
    for query in sorted(mine, key=lambda q: (room.stateful(q, node), q.name)):
        if room.load(node) <= settings.upper or round_.movable(query, node):
            continue
        closed = round_.memory.emptying
        place = room.best_place(query, node, closed, settings.target, displace=True)
        if place is not None:
            _move_displacing(round_, query, node, place)
    if room.load(node) > settings.upper:
        round_.infeasible(node, f"stays at {room.load(node):.2f}: no place for more, it sheds")


def _move_displacing(round_: Round, query: QueryView, node: str, place: Place) -> None:
    why = f"{node} sheds priority {query.priority} and no node can be started"
    round_.move(query, node, place, why)


def _fresh_name(round_: Round) -> str:
    """node-N with the lowest N that no report and no request has used."""
    taken = {host.name for host in round_.view.hosts} | set(round_.memory.starts)
    taken |= {a.node for a in round_.actions if isinstance(a, StartNode)}
    candidate = 1
    while f"node-{candidate}" in taken:
        candidate += 1
    return f"node-{candidate}"

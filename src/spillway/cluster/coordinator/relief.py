"""Overloaded nodes: what leaves, where it goes, and how many nodes have to be started.

What leaves: the highest priority that fills more of the node than it and those above own, because
nobody there can shed in its place; where priorities keep within their parts, the lowest. Of those
stateless before stateful, and the one query that is just heavy enough, or else the heaviest. Nodes
where a higher priority suffers choose first.

Where it goes, in this order: nodes with room below the target, best if they have had it lately, all
the time; new nodes; when they are vetoed, nodes with room below the upper threshold; and for what
matters more than what runs there, nodes with room at the cost of lower priorities.

A query heavier than the target of an empty node fits nowhere: it gets a node for itself, which the
others leave, and the rest is left to shedding.
"""

from dataclasses import dataclass
from math import ceil

from spillway.cluster.actions import StartNode
from spillway.cluster.coordinator.room import Taken
from spillway.cluster.coordinator.round import Round
from spillway.cluster.views import HostView, QueryView, Resources

ENOUGH = 5  # overloaded nodes without a place to look at, for each move that may be asked for


def relieve(round_: Round) -> None:
    """Nodes that have been overloaded long enough, the most important first."""
    memory, settings = round_.memory, round_.settings
    hosts = [
        host
        for host in round_.view.running
        if memory.overloaded_for.get(host.name, 0) >= settings.patience_reports
    ]
    hosts.sort(key=lambda h: (-_suffering_priority(h), -round_.room.load(h.name), h.name))
    waiting: dict[str, list[_Unplaced]] = {}
    for host in hosts:
        if unplaced := _relieve_host(round_, host, settings.target):
            waiting[host.name] = unplaced
        if len(waiting) >= ENOUGH * settings.max_moves:
            break  # more nodes than these could fill for a long time are not started
    _save(round_, set(waiting))
    if not waiting:
        return
    started = _start_nodes(round_, waiting)
    for taken in reversed([one.taken for unplaced in waiting.values() for one in unplaced]):
        round_.room.take_back(taken)
    if started:
        return
    for host in (host for host in hosts if host.name in waiting):
        if round_.moves_left > 0:
            for one in reversed(_relieve_host(round_, host, settings.upper)):
                round_.room.take_back(one.taken)
            _displace(round_, host)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unplaced:
    """A query that should leave and has nowhere to go: off its node, on no other."""

    taken: Taken
    cores: float  # that it needs where it shares nothing


def _suffering_priority(host: HostView) -> int:
    """The highest priority that sheds or misses its target on a node."""
    suffering = (c.priority for c in host.classes if c.shed_tuples_per_s > 0.0 or c.violated)
    return max(suffering, default=0)


def _relieve_host(round_: Round, host: HostView, fill_to: float) -> list[_Unplaced]:
    """Move queries off until the node is at its target; returns those that found no place."""
    room, node = round_.room, host.name
    reports = round_.memory.overloaded_for[node]
    why = f"{node} at {room.load(node):.2f} (above {round_.settings.upper:g}) for {reports} reports"
    if round_.moves_left <= 0:
        round_.infeasible(node, f"{why}: all {round_.settings.max_moves} migrations are in use")
        return []
    unplaced: list[_Unplaced] = []
    candidates = _candidates(round_, host)
    while (excess := (room.load(node) - round_.settings.target) * host.capacity.cpu_cores) > 1e-9:
        query = _next_to_leave(round_, candidates, host, excess)
        if query is None:
            round_.infeasible(node, f"{why}: no further query can leave")
            break
        candidates.remove(query)
        cores = room.whole_cores(query, node)
        place = room.best_place(query, node, round_.closed, fill_to)
        place = place or room.best_place(query, node, round_.closed, fill_to, recent=False)
        if place is None:
            unplaced.append(_Unplaced(taken=room.take(query, node, ""), cores=cores))
            round_.relieving.add(node)
        elif not round_.move(query, node, place, f"{why}: {_rank(query)}"):
            break
    return unplaced


def _candidates(round_: Round, host: HostView) -> list[QueryView]:
    """Queries that may leave, without the heaviest of those that fill a node: it stays alone."""
    room, node = round_.room, host.name
    queries = room.queries_on(node)
    big = [q for q in queries if room.whole_cores(q, node) > _target_cores(round_)]
    stays = max(big, key=lambda q: room.whole_cores(q, node), default=None)
    if stays is not None:
        cores = room.whole_cores(stays, node)
        round_.infeasible(stays.name, f"{cores:.2f} cores fit on no node's target: left to shed")
    return [q for q in queries if q is not stays and _may_leave(round_, q, node)]


def _target_cores(round_: Round) -> float:
    return round_.settings.target * _template(round_).cpu_cores


def _template(round_: Round) -> Resources:
    return round_.view.host_template or round_.view.running[0].capacity


def _may_leave(round_: Round, query: QueryView, node: str) -> bool:
    reason = round_.movable(query, node)
    if reason is not None:
        round_.infeasible(query.name, f"cannot leave {node}: {reason}")
    return reason is None


def _next_to_leave(
    round_: Round, candidates: list[QueryView], host: HostView, excess: float
) -> QueryView | None:
    room, node = round_.room, host.name
    useful = {q.name: cores for q in candidates if (cores := room.relief_cores(q, node)) > 1e-9}
    if not useful:
        return None
    crowded = _crowded_priority(round_, host)

    def badness(query: QueryView) -> tuple[bool, int, bool, bool, float, str]:
        relief = useful[query.name]
        enough = relief >= excess - 1e-9
        return (
            query.priority != crowded,
            query.priority,
            room.stateful(query, node),
            not enough,
            relief if enough else -relief,
            query.name,
        )

    return min((q for q in candidates if q.name in useful), key=badness)


def _crowded_priority(round_: Round, host: HostView) -> int | None:
    """The highest priority that, with those above, asks for more of a node than they own."""
    cores = host.capacity.cpu_cores
    shares = sorted(round_.room.entitled.items(), reverse=True)
    return next(
        (p for p, own in shares if round_.room.at_least_cores(host.name, p) > own * cores + 1e-9),
        None,
    )


def _rank(query: QueryView) -> str:
    return f"{query.name} (priority {query.priority}) leaves first"


def _save(round_: Round, nodes: set[str]) -> None:
    """Ski-rental: what shedding has cost where a node would help, less what the node would have."""
    memory, prices = round_.memory, round_.settings.prices
    last_s, memory.last_s = memory.last_s, round_.view.time_s
    if prices is None or last_s is None:
        return
    seconds = round_.view.time_s - last_s
    lost = prices.shed_per_s(round_.view, nodes) * seconds
    memory.saved = max(0.0, memory.saved + lost - prices.node(seconds))


def _start_nodes(round_: Round, waiting: dict[str, list[_Unplaced]]) -> bool:
    """Enough nodes for what found no place, less what is already coming; False when vetoed."""
    _reopen(round_, waiting)
    view, room_cores = round_.view, _target_cores(round_)
    needs = [one.cores for unplaced in waiting.values() for one in unplaced]
    round_.unplaced_cores = sum(needs)
    alone = sum(cores > room_cores for cores in needs)
    together = sum(cores for cores in needs if cores <= room_cores)
    coming = len(round_.memory.starts.keys() | {host.name for host in view.starting})
    wanted = alone + ceil(together / room_cores - 1e-9) - coming
    nodes = len(view.running) + coming
    for number in range(wanted):
        action = StartNode(
            node=round_.memory.fresh_name(),
            reason=f"{sum(needs):.2f} cores of {_some(waiting)} find no place",
            expected=round_.effect("hosts", "cluster", nodes + number, nodes + number + 1),
        )
        if not round_.ask(action, "cluster"):
            round_.memory.return_name()
            return False
    return True


def _some(nodes: dict[str, list[_Unplaced]]) -> str:
    """The nodes by name, the first few of many."""
    names = sorted(nodes)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _reopen(round_: Round, waiting: dict[str, list[_Unplaced]]) -> None:
    """Nodes about to be released are wanted again; they take queries from the next report on."""
    wanted_again = round_.memory.emptying - set(round_.memory.stops)
    for node in sorted(wanted_again):
        round_.infeasible(node, f"release given up: queries of {_some(waiting)} find no place")
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
    closed = room.closed(round_.memory.going)
    for query in sorted(mine, key=lambda q: (room.stateful(q, node), q.name)):
        if room.load(node) <= settings.upper or round_.movable(query, node):
            continue
        place = room.best_place(query, node, closed, settings.target, recent=False, displace=True)
        if place is not None:
            why = f"{node} sheds priority {query.priority} and no node can be started"
            round_.move(query, node, place, why)
    if room.load(node) > settings.upper:
        round_.infeasible(node, f"stays at {room.load(node):.2f}: no place for more, it sheds")

"""Idle nodes: emptied when all of their queries find a place elsewhere, stopped once empty."""

from spillway.cluster.actions import MoveQuery, StopNode
from spillway.cluster.coordinator.room import Place, Taken
from spillway.cluster.coordinator.round import Round
from spillway.cluster.views import HostView, QueryView


def stop_empty(round_: Round) -> None:
    """Nodes that were to be emptied and that the reports show empty."""
    memory = round_.memory
    for host in round_.view.running:
        emptied = host.name in memory.emptying and not host.operators
        if not emptied or host.name in memory.stops:
            continue
        if round_.ask(_stop(round_, host, f"{host.name} is empty"), host.name):
            memory.stops[host.name] = round_.view.time_s


def empty_idle(round_: Round) -> None:
    """Idlest first, while what stays has room for what overloads or awaits a place."""
    memory, settings = round_.memory, round_.settings
    known_s = round_.view.time_s - (memory.first_s or 0.0)
    if settings.prices is not None and known_s < memory.hold_s:
        return  # what was asked for before is not known
    taking_in = {move.destination for move in memory.moves.values()}
    taking_in |= {a.destination for a in round_.actions if isinstance(a, MoveQuery)}
    idle = [
        host
        for host in round_.view.running
        if memory.idle_for.get(host.name, 0) >= settings.idle_reports
        and host.name not in memory.emptying
    ]
    for host in sorted(idle, key=lambda h: (round_.room.load(h.name), h.name)):
        if host.name in taking_in:
            continue
        if (why := _needed(round_, host)) is not None:
            round_.infeasible(host.name, f"not released: {why}")
            return
        destinations = _empty(round_, host)
        if destinations is None:
            return  # the others have more on them: what did not fit now will not fit for them
        taking_in |= destinations


def _needed(round_: Round, host: HostView) -> str | None:
    """Why the other nodes could not take what is about to look for a place."""
    settings, room, memory = round_.settings, round_.room, round_.memory
    free = settings.target * room.capacity - room.use.max(axis=0)
    others = free[~room.closed({*memory.going, host.name})]
    young = [
        n for n, reports in memory.overloaded_for.items() if 0 < reports < settings.patience_reports
    ]
    wanted = round_.unplaced_cores + sum(
        (room.load(n) - settings.target) * round_.view.host(n).capacity.cpu_cores for n in young
    )
    if (
        wanted <= 0.0
        or wanted + room.load(host.name) * host.capacity.cpu_cores <= others.clip(min=0.0).sum()
    ):
        return None
    return f"{wanted:.2f} cores elsewhere may need it"


def _empty(round_: Round, host: HostView) -> set[str] | None:
    """Ask for all moves or none; returns the nodes that take something in."""
    refusal = round_.veto(_stop(round_, host, "idle"))
    if refusal is not None:
        round_.infeasible(host.name, f"not released: {refusal}")
        return set()
    places = _places(round_, host)
    if isinstance(places, str):
        round_.infeasible(host.name, f"not released: {places}")
        return None
    reports = round_.memory.idle_for[host.name]
    why = f"{host.name} at {round_.room.load(host.name):.2f} for {reports} reports is released"
    for query, place in places:
        round_.move(query, host.name, place, why)
    round_.memory.emptying.add(host.name)
    return {place.node for _, place in places}


def _places(round_: Round, host: HostView) -> list[tuple[QueryView, Place]] | str:
    """A place for every query, heaviest first, or why there is none."""
    room, node = round_.room, host.name
    queries = room.queries_on(node)
    queries.sort(key=lambda q: (-room.relief_cores(q, node), q.name))
    stuck = next((f"{q.name}: {why}" for q in queries if (why := round_.movable(q, node))), None)
    if stuck is not None:
        return stuck
    closed = round_.closed
    found: list[tuple[QueryView, Place]] = []
    taken: list[Taken] = []
    for query in queries:
        place = room.best_place(query, node, closed, round_.settings.target)
        if place is None:
            break
        taken.append(room.take(query, node, place.node))
        found.append((query, place))
    for one in reversed(taken):
        room.take_back(one)
    if len(found) < len(queries):
        return f"no room for {queries[len(found)].name}"
    most = round_.settings.max_moves  # half of them are kept for relief
    spare = round_.moves_left - most // 2
    return found if spare >= len(found) else f"only {most} migrations at once"


def _stop(round_: Round, host: HostView, reason: str) -> StopNode:
    nodes = len(round_.view.running)
    expected = round_.effect("hosts", "cluster", nodes, nodes - 1)
    return StopNode(node=host.name, reason=reason, expected=expected)

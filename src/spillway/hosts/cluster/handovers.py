"""The leader's part in moves of running queries: which can, and for how long they may try."""

from dataclasses import replace

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query
from spillway.hosts.cluster.assigning import Place, Standing, wants_away
from spillway.hosts.cluster.changing import both_cuts
from spillway.hosts.cluster.messages import Assignment
from spillway.hosts.cluster.moving import begun, given_up, moved_on


class Handovers:
    """Times are of the leader's monotonic clock; a new leader counts anew."""

    def __init__(self, flow: Flow, within_s: float) -> None:
        self._flow, self._within_s = flow, within_s
        self._since_s: dict[str, tuple[int, float]] = {}  # query -> generation, begin

    def begin(self, name: str, given: Assignment, now: Standing, place: Place) -> Assignment:
        """With a successor, where it is to move or change and can while it runs."""
        is_free = given.state == "runs" and given.next is None and not given.ends
        if not is_free or given.life in now.over or given.stops_first:
            return given
        if given.changes_to is None and not wants_away(given, now):
            return given
        node = given.to if now.is_alive(given.to) else place(name, given)
        if node is None:
            return given
        query = given.changes_to or given.query
        before, after = (Query.model_validate(dict(version)) for version in (given.query, query))
        try:
            both_cuts(name, before, after, self._flow)
        except SpillwayError as error:
            return given_up(given, str(error))
        return begun(given, query, node, now)

    def go_on(
        self, name: str, given: Assignment, now: Standing, place: Place, now_s: float
    ) -> Assignment | None:
        """None: nothing new."""
        assert given.next is not None
        generation, since_s = self._since_s.get(name, (0, now_s))
        if generation != given.next.generation:
            since_s = now_s
        self._since_s[name] = given.next.generation, since_s
        new = moved_on(name, given, now, place)
        if new is None and now_s - since_s > self._within_s:
            return self._overdue(given)
        return new

    def _overdue(self, given: Assignment) -> Assignment | None:
        """What was promised is kept: from the cut on it can only be said that it takes long."""
        assert given.next is not None
        within = f"within {self._within_s:g} s"
        if given.next.state == "follows":
            return given_up(given, f"its successor has not caught up {within}")
        stalls = f"{given.node} has not finished its part {within}: its watermark or its log stands"
        return (
            None if stalls in given.reason else replace(given, reason=f"{given.reason}; {stalls}")
        )


def resting(given: Assignment) -> Assignment:
    """Of a cluster that ends in the middle of a move: what has been promised is kept."""
    after = given.next
    if after is None or after.state == "follows":
        return replace(given, next=None)
    return replace(given, next=replace(after, node=None, life=None))

"""The life of an assignment, pure: what a query's next record says.

A query is never given to a life while another may still run it. A life may run it until it says
that it does not, or until it is over: by its own word, or by its lease. `Standing` is what the
leader knows of that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spillway.hosts.cluster.messages import Assignment, Came, NodeReport, run_name

Place = Callable[[str, Assignment], str | None]  # a node for a query, among those that take some


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The nodes at one moment, in the leader's eyes."""

    reports: Mapping[str, NodeReport]  # the last one of every node
    over: frozenset[str]  # lives that nothing runs under any more

    def is_alive(self, node: str | None) -> bool:
        """It can be given queries."""
        if node is None or node not in self.reports:
            return False
        report = self.reports[node]
        is_open = report.state == "running" and not report.is_pinned
        return is_open and report.life not in self.over

    def is_pinned(self, node: str) -> bool:
        return node in self.reports and self.reports[node].is_pinned

    def has_left(self, name: str, given: Assignment, position: int) -> bool:
        """Nothing of the query runs under the life that was given it, for certain."""
        run = run_name(name, given.generation)
        leaves = given.state == "leaves"
        return self._nothing_runs(run, given.node, given.life, position, leaves=leaves)

    def both_left(self, name: str, given: Assignment, position: int) -> bool:
        """It, and its successor, if it has one."""
        if (after := given.next) is None:
            return self.has_left(name, given, position)
        run = run_name(name, after.generation)
        gone = self._nothing_runs(run, after.node, after.life, position, leaves=True)
        return gone and self.has_left(name, given, position)

    def _nothing_runs(
        self, run: str, node: str | None, life: str | None, position: int, *, leaves: bool
    ) -> bool:
        if node is None or life is None or life in self.over:
            return True
        report = self.reports.get(node)
        if report is None or report.life != life or not leaves:
            return False
        return report.applied > position and run not in report.running


def lives_over(
    reports: Mapping[str, NodeReport], is_over: Callable[[str], bool], held: set[str]
) -> frozenset[str]:
    """Of all lives that hold something or report: those that have ended.

    A node that says `before` has ended that life itself; a life that is neither reported any more
    nor named like that is over when its lease is.
    """
    said = {life for report in reports.values() for life in report.before}
    said |= {report.life for report in reports.values() if report.state == "ended"}
    known = held | {report.life for report in reports.values()}
    return frozenset(life for life in known if life in said or is_over(life))


def following(
    name: str, given: Assignment, position: int, now: Standing, place: Place
) -> Assignment | None:
    """What the query's next record says; None: nothing new."""
    if given.state == "ended":
        return None
    if given.state == "waits" or now.has_left(name, given, position):
        if given.ends:
            return replace(given, state="ended", node=None, life=None, to=None)
        return _given(name, given, now, place)
    if given.state == "runs" and given.ends:
        return replace(given, state="leaves", next=None)
    if given.state != "runs" or given.next is not None:
        return None
    if wants_away(given, now):
        return replace(given, state="leaves")
    if given.to is not None and given.changes_to is None:
        return replace(given, to=None)  # it is there, or that node is gone
    return None


def wants_away(given: Assignment, now: Standing) -> bool:
    return given.to not in (None, given.node) and now.is_alive(given.to)


def _given(name: str, given: Assignment, now: Standing, place: Place) -> Assignment | None:
    """To the node where it is to go, if that one lives, else to wherever there is room."""
    node = given.to if now.is_alive(given.to) else place(name, given)
    if node is None:
        idle = replace(given, state="waits", node=None, life=None)
        return idle if given.state != "waits" else None
    taken_over = given.state == "runs"
    reason = f"{given.node} is gone" if taken_over else given.reason
    came_by: Came = "taken over" if taken_over else "stopped and started" if given.epoch else ""
    return replace(
        given,
        state="runs",
        epoch=given.epoch + 1,
        stops_first=False,
        node=node,
        life=now.reports[node].life,
        to=None,
        held_back=False,
        moved_from=given.node,
        came_by=came_by,
        reason=reason,
    )

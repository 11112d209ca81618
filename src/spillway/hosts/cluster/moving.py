"""A move while the query runs, pure: what its next record says.

A new checkpoint of the query reads on from where the old one stands, silently, until it has caught
up. Then it waits, and the origin chooses a time that is later than all that either has read, and
writes it into its offset: its own are the windows that start before. Only then is the successor
told that all others are its own. So no window is put out by both, and none by nobody, whatever dies
in between; both sides go on elsewhere from their checkpoints. Until the origin is asked, the move
can be given up: nothing has come out of the successor.

Where the results are rows, the origin chooses positions that neither has gone beyond. They follow
from where both stand, so whoever chooses again chooses the same ones. It reads up to them, and only
then the successor is told: rows keep their order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spillway.hosts.cluster.assigning import Place, Standing
from spillway.hosts.cluster.messages import Assignment, Reached, Successor, run_name


def begun(given: Assignment, query: Mapping[str, Any], node: str, now: Standing) -> Assignment:
    """With a successor on that node."""
    generation = max(given.newest, given.generation) + 1
    life = now.reports[node].life
    successor = Successor(query=query, generation=generation, node=node, life=life)
    return replace(given, next=successor, newest=generation)


def given_up(given: Assignment, why: str) -> Assignment:
    """A change is given up for good, a move goes on by stopping first."""
    if given.changes_to is not None:
        return replace(given, next=None, changes_to=None, to=None, reason=f"not changed: {why}")
    return replace(given, next=None, stops_first=True, reason=f"{given.reason}; stops first: {why}")


def moved_on(name: str, given: Assignment, now: Standing, place: Place) -> Assignment | None:
    """What the record of a query with a successor says next; None: nothing new."""
    successor = given.next
    assert successor is not None
    if successor.life is None or successor.life in now.over:
        return _given_anew(name, given, successor, now, place)
    if successor.state == "follows" and (why := _failure(name, successor, now)) is not None:
        return given_up(given, why)
    own = _reached(name, successor.generation, successor.node, successor.life, now)
    origin = _reached(name, given.generation, given.node, given.life, now)
    if successor.state == "follows" and own.has_caught_up:
        cuts = replace(successor, state="cuts", read_us=own.read_us or 0, read_at=own.read_at)
        return replace(given, next=cuts)
    if successor.state == "cuts" and origin.until_at is not None and origin.finished:
        return _moved(given, replace(successor, from_at=origin.until_at))
    if successor.state == "cuts" and origin.until_us is not None:
        return replace(given, next=replace(successor, state="takes", from_us=origin.until_us))
    if successor.state == "takes" and origin.finished:
        return _moved(given, successor)
    return None


def _moved(given: Assignment, successor: Successor) -> Assignment:
    changed = successor.query != given.query
    return replace(
        given,
        query=successor.query,
        before=given.query if changed else given.before,
        generation=successor.generation,
        epoch=successor.epoch,
        from_us=successor.from_us,
        from_at=successor.from_at,
        node=successor.node,
        life=successor.life,
        to=None,
        next=None,
        changes_to=None,
        moved_from=given.node,
        came_by="moved while it ran",
    )


def _given_anew(
    name: str, given: Assignment, successor: Successor, now: Standing, place: Place
) -> Assignment | None:
    node = place(name, given)
    if node is None:
        return None
    life = now.reports[node].life
    return replace(given, next=replace(successor, node=node, life=life, epoch=successor.epoch + 1))


def _failure(name: str, successor: Successor, now: Standing) -> str | None:
    report = now.reports.get(successor.node or "")
    if report is None or report.life != successor.life:
        return None
    return report.failed.get(run_name(name, successor.generation))


def _reached(
    name: str, generation: int, node: str | None, life: str | None, now: Standing
) -> Reached:
    report = now.reports.get(node or "")
    if report is None or report.life != life:
        return Reached()
    return report.reached.get(run_name(name, generation), Reached())

"""The leader's work, pure: from what it has read to what it writes.

In this order: nodes come and go, users' requests, queries to their next node, and once a period the
coordinator's decisions. What is under way in the log is all that there is: whoever takes over goes
on with it. Times are of the leader's monotonic clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spillway.cluster.actions import ClusterAction, MoveQuery, SetQuota, StartNode, StopNode
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.flow.cluster import Cluster
from spillway.flow.flow import Flow
from spillway.hosts.cluster.assigning import Standing, following
from spillway.hosts.cluster.cluster_view import Measured, cluster_view
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.handovers import Handovers, resting
from spillway.hosts.cluster.messages import (
    FLOW,
    NODE,
    QUERY,
    Assignment,
    FlowGiven,
    NodeOrder,
    Reached,
    Request,
    run_name,
)
from spillway.hosts.cluster.placing import Placing
from spillway.hosts.cluster.records import Record
from spillway.hosts.cluster.requests import answered
from spillway.hosts.cluster.roster import Roster
from spillway.hosts.cluster.tabling import Tabling
from spillway.model import parse_duration_s

_NOWHERE: Mapping[str, Any] = {
    "state": "waits",
    "node": None,
    "life": None,
    "to": None,
    "held_back": True,
}
WAIT_S, LONGEST_WAIT_S = 5.0, 300.0  # between starts that fail, twice as long each time
START_S = 180.0  # a node that was asked for and is not heard of by then is not coming


@dataclass(frozen=True, kw_only=True)
class Note:
    """For the journal."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What is to be written, and then to be done and told."""

    records: tuple[Record, ...]
    launch: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    moving: bool = False  # queries, while they run: two sides wait for each other
    ended: bool = False  # the cluster was to end, and has


class Chief:
    def __init__(self, flow: Flow, given: FlowGiven, coordinator: Coordinator) -> None:
        assert flow.cluster is not None
        self._flow, self._given, self._coordinator = flow, given, coordinator
        self._cluster: Cluster = flow.cluster
        self._asked_s: dict[str, float] = {}  # nodes that this leader waits for
        self._measured = Measured()
        self._handovers = Handovers(flow, parse_duration_s(self._cluster.handover))
        self._tabling = Tabling(given.lease_s)
        self._served: set[str] = set()  # lives that got as far as to take queries
        self._paused: dict[str, float] = {}  # by query: what was last heard of it
        self._failed_starts, self._next_start_s = 0, float("-inf")
        self.advises = False
        self._launch: list[str] = []
        self._notes: list[Note] = []

    def begin(self, draft: Draft) -> None:
        """On the first start of a cluster, and where it was stopped."""
        if draft.flow is None:
            for name, query in self._flow.queries.items():
                body = query.model_dump(by_alias=True)
                draft.put(QUERY + name, Assignment, Assignment(query=body, held_back=True))
        known = {} if draft.flow is None else draft.flow.flow.get("classes", {})
        flow = {**self._given.flow, "classes": {**self._given.flow["classes"], **known}}
        ends = draft.flow is not None and draft.flow.ends  # what was begun is brought to its end
        draft.put(FLOW, FlowGiven, replace(self._given, flow=flow, ends=ends))

    def decide(
        self,
        draft: Draft,
        roster: Roster,
        requests: Mapping[str, Request],
        now_s: float,
        *,
        due: bool,
    ) -> Orders:
        """One pass; `due`: a period has ended."""
        self._launch, self._notes = [], []
        self._measured.read(roster.reports.values())
        for name, life in roster.accepted(draft.orders):
            draft.order(name, life=life)
        now = Standing(reports=roster.reports, over=roster.over)
        self._served |= {r.life for r in roster.reports.values() if r.state == "running"}
        for asked, answer in answered(requests, draft, now):
            self._note("asked", request=asked, done=answer.done, error=answer.error)
        flow = draft.flow
        assert flow is not None
        if flow.ends:
            return self._end(draft, now)
        self._lose_nodes(draft, now, now_s)
        self._keep_fewest(draft, now, now_s)
        self._move_on(draft, now, now_s)
        self._note_pauses(draft, now)
        if due:
            self._decide(draft, now, now_s)
        if said := self._tabling.step(draft, now.reports, now_s, due=due):
            self._note("tables", said=said)
        return self._orders(draft)

    def _orders(self, draft: Draft, ended: bool = False) -> Orders:
        return Orders(
            records=tuple(draft.records()),
            launch=tuple(self._launch),
            notes=tuple(self._notes),
            moving=any(given.next is not None for given in draft.queries.values()),
            ended=ended,
        )

    def _note(self, kind: str, **fields: Any) -> None:
        self._notes.append(Note(kind=kind, fields=fields))

    # -- nodes

    def _lose_nodes(self, draft: Draft, now: Standing, now_s: float) -> None:
        """Those that are over, and those that never came."""
        for name, order in draft.orders.items():
            if order.life is not None:
                self._asked_s.pop(name, None)
                if order.life in now.over:
                    served = order.life in self._served
                    self._note("node gone", node=name, life=order.life, had_started=served)
                    self._wait_longer(now_s, failed=not served and order.state == "runs")
                    draft.remove(NODE + name)
            elif now_s - self._asked_s.setdefault(name, now_s) > START_S:
                self._note("node did not start", node=name, within_s=START_S)
                self._wait_longer(now_s, failed=True)
                self._asked_s.pop(name)
                draft.remove(NODE + name)

    def _wait_longer(self, now_s: float, *, failed: bool) -> None:
        """Before the next start, where nodes end before they serve: what ends them is still there,
        and their logs say what it is."""
        self._failed_starts = self._failed_starts + 1 if failed else 0
        wait_s = min(LONGEST_WAIT_S, WAIT_S * 2.0**self._failed_starts) if failed else 0.0
        self._next_start_s = now_s + wait_s

    def _keep_fewest(self, draft: Draft, now: Standing, now_s: float) -> None:
        orders = draft.orders
        ours = {name: order for name, order in orders.items() if not now.is_pinned(name)}
        here = [name for name, order in ours.items() if order.state == "runs"]
        for _ in range(self._cluster.fewest - len(here)):
            if self._cluster.launcher == "none" or now_s < self._next_start_s:
                return
            name = _fresh_name({*draft.orders, *now.reports})
            self._start(draft, name, f"{len(here)} of at least {self._cluster.fewest} nodes", now_s)

    def _start(self, draft: Draft, name: str, reason: str, now_s: float) -> None:
        launched = draft.orders.get(name, NodeOrder()).launched + 1
        order = NodeOrder(launched=launched, reason=reason)
        draft.put(NODE + name, NodeOrder, order)
        self._asked_s[name] = now_s
        self._launch.append(name)
        self._note("node asked for", node=name, reason=reason)

    # -- queries

    def _move_on(self, draft: Draft, now: Standing, now_s: float) -> None:
        """Every query to its next record, the highest class first."""
        place = Placing(
            now, draft.orders, draft.queries, self._measured.cores, self._cluster.fewest
        )
        known, orders = draft.queries, draft.orders
        for name, given in sorted(known.items(), key=lambda q: (-self._priority(q[1]), q[0])):
            order = orders.get(given.node or "")
            if order is not None and order.state != "runs" and given.state == "runs":
                to = given.to or place(name, given)
                given = replace(given, to=to, reason=order.reason or f"{given.node} is drained")
            position = draft.position(QUERY + name)
            given = self._handovers.begin(name, given, now, place)
            new = following(name, given, position, now, place)
            if new is None and given.next is not None and given.state == "runs":
                new = self._handovers.go_on(name, given, now, place, now_s)
            if (new := new or given) != known[name]:
                draft.put(QUERY + name, Assignment, new)
                self._note_query(name, known[name], new)

    def _note_query(self, name: str, given: Assignment, new: Assignment) -> None:
        said = {"query": name, "state": new.state, "node": new.node, "reason": new.reason}
        if (after := new.next) is not None and new.state == "runs":
            said["node"] = f"{new.node}, {after.node}"
            self._note(after.state, **said, generation=after.generation, from_us=after.from_us)
        elif new.state == "runs" and given.generation != new.generation:
            said |= {"came_by": new.came_by, "moved_from": new.moved_from}
            self._note("moved", **said, generation=new.generation)
        elif new.state == "runs" and given.node != new.node:
            self._note("given", **said, moved_from=new.moved_from, came_by=new.came_by)
        else:
            self._note(new.state, **said)

    def _note_pauses(self, draft: Draft, now: Standing) -> None:
        """What moves and take-overs cost."""
        for name, given in draft.queries.items():
            report = now.reports.get(given.node or "")
            if report is None or report.life != given.life:
                continue
            pause_s = report.reached.get(run_name(name, given.generation), Reached()).pause_s
            if pause_s is not None and self._paused.get(name) != pause_s:
                self._paused[name] = pause_s
                self._note("paused", query=name, came_by=given.came_by, pause_s=round(pause_s, 3))

    def _priority(self, given: Assignment) -> int:
        name = given.query.get("class", "default")
        classes = self._flow.classes
        return classes[name].priority if name in classes else 0

    # -- the coordinator's decisions

    def _decide(self, draft: Draft, now: Standing, now_s: float) -> None:
        cores, queries, orders = self._cluster.cores, draft.queries, draft.orders
        view = cluster_view(now, queries, orders, self._measured, cores, now_s)
        if not view.sharing:
            return
        directive = self._coordinator.decide(view)
        for outcome in directive.noticed:
            self._note("noticed", outcome=outcome)
        for action in directive.actions:
            said = {"action": type(action).__name__, "reason": getattr(action, "reason", "")}
            subject = getattr(action, "query", None) or getattr(action, "node", "")
            self._note("advises" if self.advises else "decides", subject=subject, **said)
            if not self.advises:
                self._carry_out(action, draft, now_s)

    def _carry_out(self, action: ClusterAction, draft: Draft, now_s: float) -> None:
        if isinstance(action, MoveQuery):
            if draft.queries[action.query].next is None:
                draft.assign(action.query, to=action.destination, reason=action.reason)
        elif isinstance(action, StartNode):
            if self._cluster.launcher != "none" and now_s >= self._next_start_s:
                self._start(draft, action.node, action.reason, now_s)
        elif isinstance(action, StopNode):
            draft.order(action.node, state="stops", reason=action.reason)
        elif isinstance(action, SetQuota):
            order = draft.orders.get(action.node, NodeOrder())
            quotas = {**order.quotas, action.class_name: action.quota}
            draft.order(action.node, quotas=quotas)

    # -- the end

    def _end(self, draft: Draft, now: Standing) -> Orders:
        """All nodes stop, all queries wait for the next start."""
        for name, order in draft.orders.items():
            if order.life is None or order.life in now.over or now.is_pinned(name):
                draft.remove(NODE + name)
            elif order.state != "stops":
                draft.order(name, state="stops", reason="the cluster ends")
        for name, given in draft.queries.items():
            if given.state == "runs":
                draft.assign(name, state="leaves", reason="the cluster ends")
            elif given.state == "leaves" and now.both_left(
                name, given, draft.position(QUERY + name)
            ):
                draft.put(QUERY + name, Assignment, replace(resting(given), **_NOWHERE))
        waits = all(given.state in ("waits", "ended") for given in draft.queries.values())
        ended = waits and not draft.orders
        if ended and draft.flow is not None:
            draft.put(FLOW, FlowGiven, replace(draft.flow, ends=False))
        return self._orders(draft, ended)


def _fresh_name(taken: Iterable[str]) -> str:
    known, number = set(taken), 1
    while f"node-{number}" in known:
        number += 1
    return f"node-{number}"

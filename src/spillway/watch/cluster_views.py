"""Nodes, queries and moves of a cluster, from its control log to what a page shows. Pure."""

import math
from collections.abc import Mapping
from dataclasses import replace

from spillway.cluster.views import QueryView
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow, Query
from spillway.flow.links import links_of
from spillway.flow.sql import read_by
from spillway.hosts.cluster.messages import Assignment, NodeOrder, NodeReport, Seen, run_name
from spillway.hosts.cluster.reading import Reading
from spillway.watch.standing import QueryStanding
from spillway.watch.views import Audit, Flows, MoveSeen, NodeSeen, StreamView

WAITS = "waits for a node"
_STAGES = {
    "follows": "reads on there, nothing of it comes out yet",
    "cuts": "has caught up; the cut is being chosen",
    "takes": "windows from the cut on are its own",
}


class Wiring:
    """Which query reads which streams, and which stream is which query's result. It follows from
    the texts of the queries alone, so it is made again only where one of them has changed."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._made: Mapping[str, Mapping[str, object]] | None = None
        self.streams: tuple[StreamView, ...] = ()
        self.reads: Mapping[str, tuple[str, ...]] = {}
        self.writes: Mapping[str, str] = {}

    def use(self, queries: Mapping[str, Assignment]) -> None:
        given = {name: assigned.query for name, assigned in queries.items()}
        if given == self._made:
            return
        known = {name: Query.model_validate(dict(body)) for name, body in given.items()}
        flow = self._flow.model_copy(update={"queries": known})
        written_by = {link.stream: link.writer for link in links_of(flow)}
        self._made = given
        self.reads = {name: _reads(name, query, flow) for name, query in known.items()}
        self.writes = {name: query.sink.type for name, query in known.items()} | {
            writer: stream for stream, writer in written_by.items()
        }
        self.streams = tuple(
            StreamView(name=name, source=stream.source or "", written_by=written_by.get(name))
            for name, stream in flow.streams.items()
        )


def _reads(name: str, query: Query, flow: Flow) -> tuple[str, ...]:
    try:
        return read_by(name, query, flow)
    except SpillwayError:  # a function that only its nodes can import
        return ()


def queries_seen(reading: Reading, wiring: Wiring) -> dict[str, QueryStanding]:
    """Those that the leader places, and those of applications that have attached."""
    wiring.use(reading.queries)
    found = {name: query_seen(name, reading, wiring) for name in reading.queries}
    for node, report in reading.reports.items():
        for view in report.queries if report.is_pinned else ():
            name = pinned_name(node, view.name)
            found[name] = replace(
                _seen(view.name, report), class_name=view.class_name, node=node, writes="its own"
            )
    return {name: query for name, query in found.items() if query.class_name in reading.classes}


def pinned_name(node: str, query: str) -> str:
    """Two applications may have queries of one name."""
    return f"{node}/{query}"


def query_seen(name: str, reading: Reading, wiring: Wiring) -> QueryStanding:
    given = reading.queries[name]
    report = reading.reports.get(given.node or "")
    found = _seen(name, report)
    return replace(
        found,
        class_name=given.query.get("class", "default"),
        state=_doing(name, given, report),
        reads=wiring.reads.get(name, ()),
        writes=wiring.writes.get(name, ""),
        node=given.node,
        reason=found.reason or given.reason,
    )


def _seen(name: str, report: NodeReport | None) -> QueryStanding:
    """By the report of the node that runs it."""
    seen = Seen() if report is None else report.seen.get(name, Seen())
    consumed = seen.admitted_tuples + seen.shed_tuples
    return QueryStanding(
        class_name="",
        state="starting" if report is None else report.states.get(name, "starting"),
        totals=Flows(
            offered=consumed + seen.waiting_tuples,
            admitted=seen.admitted_tuples,
            shed=seen.shed_tuples,
            waiting=seen.waiting_tuples,
        ),
        audit=Audit(verdict="with its node"),
        load=load_of(name, report),
        reason=seen.reason,
    )


def _doing(name: str, given: Assignment, report: NodeReport | None) -> str:
    run = run_name(name, given.generation)
    if given.state != "runs":
        return "stopping" if given.state == "leaves" else WAITS
    if report is None:
        return "starting"
    return "given up" if run in report.failed else report.states.get(run, "starting")


def load_of(query: str, report: NodeReport | None) -> float:
    """Batch time a second that it wants of its node."""
    operators = () if report is None or report.host is None else report.host.operators
    return sum(each.use.cpu_cores for each in operators if each.name == query)


def node_seen(name: str, order: NodeOrder, reading: Reading, now_s: float) -> NodeSeen:
    report = reading.reports.get(name)
    if report is None or report.host is None:
        return NodeSeen(name=name, state="starting" if order.state == "runs" else "stopping")
    return NodeSeen(
        name=name,
        state=_state(order, report),
        machine=report.machine,
        load=report.host.utilisation,
        slots=report.host.capacity.cpu_cores,
        queries=tuple(sorted(report.running)),
        failed=tuple(f"{query}: {why}" for query, why in report.failed.items()),
        heard_s=max(0.0, now_s - reading.heard_s[name]),
        watch=report.watch or None,
    )


def _state(order: NodeOrder, report: NodeReport) -> str:
    if report.is_pinned:
        return "attached"
    return "stopping" if order.state == "stops" else report.state


def moves_of(queries: Mapping[str, Assignment]) -> tuple[MoveSeen, ...]:
    """Those under way."""
    found = []
    for name, given in queries.items():
        if (after := given.next) is not None:
            changes = " as another version" if after.query != given.query else ""
            there, stage = after.node or "", _STAGES[after.state] + changes
        elif given.to not in (None, given.node):
            there, stage = given.to or "", "stops here, then starts there"
        else:
            continue
        origin = given.node or ""
        move = MoveSeen(query=name, origin=origin, destination=there, stage=stage, why=given.reason)
        found.append(move)
    return tuple(found)


def values_of(
    view: QueryView, seen: Seen, before: Seen, seconds: float, target_s: float
) -> dict[str, float]:
    """What a report adds to the curves of a query, since the report before it."""
    kept = float(max(0, seen.admitted_tuples - before.admitted_tuples))
    values = {
        "offered": view.offered_rate_per_s * seconds,
        "kept": kept,
        "shed": float(max(0, seen.shed_tuples - before.shed_tuples)),
        "target_s": target_s,
        "waiting": float(seen.waiting_tuples),
        "waiting_s": seen.waiting_s,
        "worst_s": math.nan if seen.delay_s is None else seen.delay_s,
    }
    if seen.delay_s is not None:
        values |= {"delivered": kept, "delay_tuples_s": seen.delay_s * kept}
    if seen.batch_s is not None:
        fixed_s = min(seen.fixed_s, seen.batch_s)
        values |= {"batches": 1.0, "batch_s": seen.batch_s, "fixed_s": fixed_s}
        values["kept_s"] = seen.batch_s - fixed_s
    return values

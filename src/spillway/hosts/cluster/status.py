"""A cluster as its control log shows it: for people, and as JSON for what they build on it."""

import time
from collections.abc import Mapping
from typing import Any

from spillway.errors import unknown_name
from spillway.hosts.cluster.messages import Assignment, NodeReport, Reached, run_name
from spillway.hosts.cluster.node_folder import audits_of, by_stream, overlap_of
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.reading import Reading
from spillway.report import Table


class Status:
    """Reads on each time; nothing is written."""

    def __init__(self, place: Place) -> None:
        self._place, self._reading = place, Reading(place)

    def now(self) -> dict[str, Any]:
        reading = self._reading
        reading.read_on(time.time())
        return {
            "cluster": self._place.name,
            "leader": self._leader(),
            "nodes": {
                name: _node(reading.reports.get(name), order.state)
                for name, order in sorted(reading.orders.items())
            },
            "queries": {
                name: {
                    "class": given.query.get("class", "default"),
                    "state": given.state,
                    "node": given.node,
                    "to": given.to,
                    "epoch": given.epoch,
                    "generation": given.generation,
                    "next": _next(given),
                    "moved_from": given.moved_from,
                    "came_by": given.came_by,
                    "reason": given.reason,
                    **_measured(name, given.generation, reading.said.get(given.node or "")),
                }
                for name, given in sorted(reading.queries.items())
            },
        }

    def assignment(self, query: str) -> Assignment:
        self._reading.read_on(time.time())
        if query not in self._reading.queries:
            raise unknown_name("query", query, self._reading.queries)
        return self._reading.queries[query]

    def _leader(self) -> dict[str, Any] | None:
        word = self._reading.leadership
        if not word.leader:
            return None
        return {"id": word.leader, "host": word.host, "epoch": self._reading.epoch}


def _node(report: NodeReport | None, wanted: str) -> dict[str, Any]:
    if report is None or report.host is None:
        return {"state": "starting" if wanted == "runs" else wanted, "load": 0.0, "queries": []}
    return {
        "state": _state(report, wanted),
        "machine": report.machine,
        "reported_s_ago": round(max(0.0, time.time() - report.time_s), 1),
        "watch": report.watch or None,
        "load": round(report.host.utilisation, 3),
        "queries": sorted(report.running),
        "failed": dict(report.failed),
        "classes": {
            c.name: {
                "load": round(c.load, 3),
                "quota": round(c.quota, 3),
                "delay_s": c.delay_s,
                "target_delay_s": c.target_delay_s,
                "shed_tuples_per_s": c.shed_tuples_per_s,
            }
            for c in report.host.classes
        },
    }


def _state(report: NodeReport, wanted: str) -> str:
    if report.is_pinned:
        return "attached"
    return "stopping" if wanted == "stops" else report.state


def _next(given: Assignment) -> dict[str, Any] | None:
    """The other side of a move under way."""
    if (after := given.next) is None:
        return None
    return {
        "node": after.node,
        "generation": after.generation,
        "state": after.state,
        "from_us": after.from_us,
        "from_at": after.from_at,
        "changes": after.query != given.query,
    }


def _measured(name: str, generation: int, report: NodeReport | None) -> dict[str, Any]:
    run = run_name(name, generation)
    if report is not None and run in report.failed:
        return {"doing": f"given up: {report.failed[run]}"}
    if report is None:
        return {}
    paused = {"pause_s": report.reached.get(run, Reached()).pause_s}
    found = [view for view in report.queries if view.name == name]
    if not found:
        return paused
    return paused | {
        "doing": report.states.get(run, ""),
        "offered_per_s": found[0].offered_rate_per_s,
        "keep_fraction": found[0].keep_fraction,
        "delay_s": found[0].delay_s,
    }


def tables(status: Mapping[str, Any]) -> list[Table]:
    leader = status["leader"]
    led = f"led by {leader['id']}" if leader else "nobody leads it"
    nodes = [
        (name, node["state"], f"{node['load']:.0%}", ", ".join(node["queries"]), _ago(node))
        for name, node in status["nodes"].items()
    ]
    queries = [
        (
            name,
            query["class"],
            _where(query),
            query.get("doing", query["state"]),
            "" if query.get("delay_s") is None else f"{query['delay_s']:.2f} s",
            f"{1 - query.get('keep_fraction', 1.0):.1%}",
            _last_change(query),
        )
        for name, query in status["queries"].items()
    ]
    return [
        Table(
            title=f"cluster {status['cluster']}, {led}",
            columns=("node", "state", "load", "queries", "reported"),
            rows=nodes,
        ),
        Table(
            title="queries",
            columns=("query", "class", "node", "state", "delay", "shed", "last change"),
            rows=queries,
        ),
    ]


def _ago(node: Mapping[str, Any]) -> str:
    return f"{node['reported_s_ago']:g} s ago" if "reported_s_ago" in node else ""


def _last_change(query: Mapping[str, Any]) -> str:
    """Why, which way, and how long nothing came."""
    paused = "" if query.get("pause_s") is None else f", paused {query['pause_s']:.1f} s"
    how = f"{query['came_by']}{paused}".removeprefix(", ")
    return f"{query['reason']} ({how})" if how else query["reason"]


def _where(query: Mapping[str, Any]) -> str:
    if (after := query["next"]) is not None:
        return f"{query['node']}, {after['node']} {after['state']}"
    return f"{query['node']} -> {query['to']}" if query["to"] else query["node"] or "none"


def audit_rows(place: Place) -> list[dict[str, Any]]:
    """One row a life of a gate, over the ledgers of all nodes; `overlap` was offered to the
    checkpoint before it as well."""
    rows: list[dict[str, Any]] = []
    before: dict[tuple[str, str], str] = {}
    for (run, stream), ledgers in sorted(by_stream(place.folder).items(), key=_by_generation):
        name, earlier = run.partition("@")[0], before.get((run.partition("@")[0], stream))
        before[name, stream] = run
        overlap = 0 if earlier is None else overlap_of(place.folder, earlier, run, stream)
        for found in audits_of(place.folder, run, stream):
            rows.append(
                {
                    "query": run,
                    "stream": stream,
                    "ledgers": ledgers,
                    "offered": found.totals.offered,
                    "admitted": found.totals.admitted,
                    "shed": found.totals.shed,
                    "pending": found.totals.pending,
                    "overlap": overlap,
                    "batches": found.batch_count,
                    "exact": found.exact,
                    "problems": list(found.problems),
                    "missing": list(found.missing),
                }
            )
    return rows


def _by_generation(found: tuple[tuple[str, str], int]) -> tuple[str, str, int]:
    (run, stream), _ = found
    name, _, generation = run.partition("@")
    return name, stream, int(generation or 1)

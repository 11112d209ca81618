"""What would run: streams, classes, queries, and where their gates and sinks are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructField, StructType

from spillway.check.columns import columns_of
from spillway.check.network import arcs_of, drawn
from spillway.classes.capacity import original_shares
from spillway.errors import SpillwayError
from spillway.estimates.flow import answer_sql, check_answers
from spillway.flow.combining import combined, require_one_stream
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow, Query
from spillway.flow.sql import read_by
from spillway.hosts.spark.worker.rows import ARRIVAL, OURS, WEIGHT
from spillway.logs.catalog import MADE_UP
from spillway.templates.instances import shapes_of, template_of

DERIVED = Path("streams")  # in the folder of the flow that runs


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    name: str
    class_name: str
    gates: tuple[str, ...]
    sink: str
    fused: str  # how many queries share the plan
    reads: str  # partial rows, or tuples and why


@dataclass(frozen=True, kw_only=True)
class FlowPlan:
    flow: Flow
    quotas: dict[str, float]
    queries: tuple[QueryPlan, ...]

    def tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[object, ...]]]]:
        flow = self.flow
        streams = [
            (name, s.source, s.event_time or "", s.policy, s.shedder)
            for name, s in flow.streams.items()
        ]
        classes = [
            (name, c.priority, f"{self.quotas[name]:.0%}", c.delay, c.law[0])
            for name, c in flow.classes.items()
        ]
        queries = [
            (q.name, q.class_name, ", ".join(q.gates), q.reads, q.fused, q.sink)
            for q in self.queries
        ]
        return [
            ("streams", ("stream", "source", "event time", "policy", "shedder"), list(streams)),
            ("classes", ("class", "priority", "quota", "delay", "load manager"), list(classes)),
            ("queries", ("query", "class", "gates", "reads", "fused", "sink"), list(queries)),
        ]

    def as_json(self) -> dict[str, Any]:
        tables = {
            title: [dict(zip(columns, row, strict=True)) for row in rows]
            for title, columns, rows in self.tables()
        }
        links = [
            {"from": link.writer, "to": reader, "stream": link.stream, "place": link.place}
            for link, reader in arcs_of(self.flow)
        ]
        return {**tables, "links": links} if links else tables

    def network(self) -> list[str]:
        """Lines to look at; none where no query reads another one's results."""
        return drawn(self.flow)


def _fused(name: str, query: Query) -> str:
    if query.template is None:
        return ""
    given = template_of(name, query)
    shapes = len(shapes_of(given.template, given.rows))
    branches = f", {shapes} window sizes" if shapes > 1 else ""
    return f"{len(given.rows):,} instances as one plan{branches}"


def _reads(name: str, query: Query, flow: Flow) -> str:
    if not query.combine:
        return "tuples: combine is false"
    try:
        require_one_stream(name, query, flow)
        [stream] = read_by(name, query, flow)
        if stream in flow.queries:  # a derived one
            return "tuples or partial rows: its columns are known when it runs"
        if flow.streams[stream].columns is None and flow.streams[stream].source not in MADE_UP:
            return f"tuples: stream '{stream}' declares no columns"
        declared = columns_of(stream, flow.streams[stream]) or {}
        known = [*declared.items(), (ARRIVAL, OURS[ARRIVAL]), (WEIGHT, OURS[WEIGHT])]
        columns = StructType([StructField(c, kind) for c, kind in known if kind is not None])
        combined(name, answer_sql(name, query, flow), flow, columns)
    except SpillwayError as error:
        return f"tuples: {error}"
    return "partial rows"


def plan_of(flow: Flow) -> FlowPlan:
    """The plan of a flow; raises for SQL that cannot be parsed and streams that do not exist."""
    check_answers(flow)
    flow = expanded(flow, DERIVED)
    queries = tuple(
        QueryPlan(
            name=name,
            class_name=query.class_name,
            gates=tuple(f"{name}/{stream}" for stream in read_by(name, query, flow)),
            sink=query.sink.type,
            reads=_reads(name, query, flow),
            fused=_fused(name, query),
        )
        for name, query in flow.queries.items()
    )
    quotas = original_shares({name: c.priority for name, c in flow.classes.items()})
    return FlowPlan(flow=flow, quotas=quotas, queries=queries)

"""Cost and selectivity of a running query, operator by operator, from Spark's own SQL metrics.

Spark counts rows and times work while a plan runs anyway; reading the counters afterwards changes
neither the plan nor its result. Rows are exact. Times are task time, summed over the cores, and
Spark times pipelines rather than operators: a pipeline is pulled from its end, so its time holds
that of everything below it up to the next exchange, and an operator that was compiled into a
pipeline has none of its own. by_stage.py has the exact time of whole stages.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from spillway.errors import SpillwayError
from spillway.report import Table

_SECONDS = {"timing": 1e-3, "nsTiming": 1e-9}
_ROWS = ("numOutputRows", "shuffleRecordsWritten")  # an exchange says what it wrote
_OVERLAPPING = ("fetchWaitTime", "remoteReqsDuration", "remoteMergedReqsDuration")
_POLL_S = 0.02


@dataclass(frozen=True, kw_only=True)
class PlanNode:
    """A node of an executed plan with its counters: key -> (value, kind)."""

    name: str
    metrics: Mapping[str, tuple[int, str]]
    children: tuple["PlanNode", ...] = ()

    @property
    def rows(self) -> int:
        """Rows that left the node; what does not count its rows hands them on as they are."""
        for key in _ROWS:
            if key in self.metrics:
                return self.metrics[key][0]
        return sum(child.rows for child in self.children)

    @property
    def busy_s(self) -> float | None:
        times_s = [
            value * _SECONDS[kind]
            for key, (value, kind) in self.metrics.items()
            if kind in _SECONDS and key not in _OVERLAPPING
        ]
        return sum(times_s) if times_s else None

    def plus(self, other: "PlanNode") -> "PlanNode":
        """Both batches together; plans of one query have one shape."""
        if self.name != other.name or len(self.children) != len(other.children):
            raise SpillwayError(f"the plan changed between batches: {self.name}, {other.name}")
        keys = {**self.metrics, **other.metrics}
        pairs = zip(self.children, other.children, strict=True)
        return PlanNode(
            name=self.name,
            metrics={key: (_of(self, key) + _of(other, key), keys[key][1]) for key in keys},
            children=tuple(mine.plus(theirs) for mine, theirs in pairs),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorCost:
    """One operator over the measured batches."""

    name: str
    depth: int  # 0 is the sink
    rows_in: int
    rows_out: int
    stage_rows: int  # that entered the stage below this operator
    busy_s: float | None  # task time with everything below in the stage; None: not timed by Spark

    @property
    def selectivity(self) -> float | None:
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def cost_s(self) -> float | None:
        """Task time per tuple that enters the stage, up to and with this operator."""
        return (
            self.busy_s / self.stage_rows if self.busy_s is not None and self.stage_rows else None
        )


def measure(
    query: StreamingQuery, batches: int = 1, timeout_s: float = 60.0
) -> tuple[OperatorCost, ...]:
    """Costs over the next finished batches of a running query, the sink's operators first."""
    total: PlanNode | None = None
    deadline_s, last = time.monotonic() + timeout_s, -1
    for _ in range(batches):
        last, plan = _finished_plan(query, last, deadline_s)
        total = plan if total is None else total.plus(plan)
    return operator_costs(total) if total is not None else ()


def operator_costs(plan: PlanNode) -> tuple[OperatorCost, ...]:
    return tuple(_costs(plan, 0))


def cost_table(costs: tuple[OperatorCost, ...], title: str) -> Table:
    return Table(
        title=title,
        columns=("operator", "rows in", "rows out", "selectivity", "task time (s)", "us/tuple"),
        rows=[
            (
                "  " * cost.depth + cost.name,
                cost.rows_in,
                cost.rows_out,
                "" if cost.selectivity is None else cost.selectivity,
                "" if cost.busy_s is None else cost.busy_s,
                "" if cost.cost_s is None else cost.cost_s * 1e6,
            )
            for cost in costs
        ],
    )


def _costs(node: PlanNode, depth: int) -> Iterator[OperatorCost]:
    yield OperatorCost(
        name=node.name,
        depth=depth,
        rows_in=sum(child.rows for child in node.children),
        rows_out=node.rows,
        stage_rows=_stage_rows(node),
        busy_s=node.busy_s,
    )
    for child in node.children:
        yield from _costs(child, depth + 1)


def _stage_rows(node: PlanNode) -> int:
    """Rows from sources and exchanges below; an exchange itself works on what it is given."""
    if not node.children:
        return node.rows
    return sum(child.rows if _is_boundary(child) else _stage_rows(child) for child in node.children)


def _is_boundary(node: PlanNode) -> bool:
    """An exchange ends a pipeline: what lies below runs in other tasks."""
    return node.name.endswith("Exchange")


def _of(node: PlanNode, key: str) -> int:
    return node.metrics[key][0] if key in node.metrics else 0


def _finished_plan(query: StreamingQuery, after: int, deadline_s: float) -> tuple[int, PlanNode]:
    """The plan of a batch later than `after`, once it has ended: its counters are final then."""
    stream: Any = query._jsq
    if hasattr(stream, "streamingQuery"):
        stream = stream.streamingQuery()
    while time.monotonic() < deadline_s and query.isActive:
        execution = stream.lastExecution()
        if execution is not None and execution.currentBatchId() > after:
            batch = int(execution.currentBatchId())
            while time.monotonic() < deadline_s and query.isActive:
                progress = stream.lastProgress()
                if progress is not None and progress.batchId() >= batch:
                    return batch, _read(execution.executedPlan())
                time.sleep(_POLL_S)
        time.sleep(_POLL_S)
    raise SpillwayError("no batch of the query ended in time: costs need a query with tuples")


def _read(node: Any) -> PlanNode:
    kind = node.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _read(node.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _read(node.plan())
    return PlanNode(
        name=node.nodeName(),
        metrics={
            entry._1(): (int(entry._2().value()), entry._2().metricType())
            for entry in _each(node.metrics())
        },
        children=tuple(_read(child) for child in _each(node.children())),
    )


def _each(collection: Any) -> Iterator[Any]:
    found = collection.iterator()
    while found.hasNext():
        yield found.next()

"""How a flow stands beside what its journal tells, and the snapshot that follows from both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from spillway.classes.capacity import original_shares
from spillway.gate.delays import delay_s
from spillway.model import Decided, Delays, Target
from spillway.watch.story import RECENT_S, Share, Story
from spillway.watch.views import (
    Audit,
    BatchTime,
    ClassView,
    ClusterSeen,
    Flows,
    Override,
    Pace,
    QueryView,
    Snapshot,
    StreamView,
)
from spillway.watch.words import health_of

SAID_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class QueryStanding:
    class_name: str
    state: str
    reads: tuple[str, ...] = ()
    writes: str = ""
    span_s: float = RECENT_S  # so long ago its last batch can lie
    delays: tuple[Delays, ...] = ()  # of batches in that time, as Spark committed them
    phases_s: dict[str, float] | None = None
    totals: Flows = field(default_factory=Flows)
    audit: Audit = field(default_factory=Audit)
    restarts: int = 0
    dry_run: bool = False
    budget: str | None = None
    is_template: bool = False
    node: str | None = None
    load: float | None = None  # None: by the prices of its last decision
    reason: str | None = None  # None: of its last decision


@dataclass(frozen=True, kw_only=True)
class ClassStanding:
    priority: int
    target: Target
    manager: str = "predictive"
    lend: float = 1.0
    min_keep: float = 0.0
    shedding: str = "active"
    condition: str | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    flow: str
    state: Literal["starting", "running", "stopped"]
    ready: bool
    started_s: float | None
    control_looked_s: float | None
    cores: int
    policy: str
    streams: tuple[StreamView, ...]
    classes: Mapping[str, ClassStanding]
    queries: Mapping[str, QueryStanding]
    overrides: tuple[Override, ...] = ()


def snapshot_of(
    story: Story, now: Standing, now_s: float, cluster: ClusterSeen | None = None
) -> Snapshot:
    with story.lock:
        queries = tuple(_query(name, at, story, now, now_s) for name, at in now.queries.items())
        classes = [_class(name, at, story, now, queries, now_s) for name, at in now.classes.items()]
        said = tuple(reversed(list(story.said)[-SAID_SHOWN:]))
    classes.sort(key=lambda view: (-view.priority, view.name))
    return Snapshot(
        flow=now.flow,
        time_s=now_s,
        started_s=now.started_s,
        state=now.state,
        ready=now.ready,
        control_looked_s=now.control_looked_s,
        cores=now.cores,
        policy=now.policy,
        streams=now.streams,
        classes=tuple(classes),
        queries=queries,
        cause=_cause(queries, classes),
        overrides=now.overrides,
        said=said,
        cluster=cluster,
    )


def _query(name: str, at: QueryStanding, story: Story, now: Standing, now_s: float) -> QueryView:
    curves, last = story.queries.get(name), story.last.get(name)
    pace, batch = curves.lately(now_s, at.span_s) if curves else (Pace(), BatchTime())
    return QueryView(
        name=name,
        class_name=at.class_name,
        state=at.state,
        reads=at.reads,
        writes=at.writes,
        pace=_measured(pace, at.delays, now.classes[at.class_name].target),
        batch=replace(batch, phases_s=at.phases_s),
        load=_load(last, pace) if at.load is None else at.load,
        totals=at.totals,
        audit=at.audit,
        reason=_reason(last) if at.reason is None else at.reason,
        restarts=at.restarts,
        dry_run=at.dry_run,
        budget=at.budget,
        is_template=at.is_template,
        node=at.node,
    )


def _class(
    name: str,
    at: ClassStanding,
    story: Story,
    now: Standing,
    queries: Sequence[QueryView],
    now_s: float,
) -> ClassView:
    own = [query for query in queries if query.class_name == name]
    delays = [delays for query in own for delays in now.queries[query.name].delays]
    pace = _measured(_together([query.pace for query in own]), delays, at.target)
    worst = max(own, key=_trouble, default=None)
    reason = worst.reason if worst else ""
    health, why = health_of(pace, at.target, [q.state for q in own], at.condition, reason)
    original = original_shares({n: c.priority for n, c in now.classes.items()})[name]
    share = story.shares.get(name) or Share(quota=original)
    return ClassView(
        name=name,
        health=health,
        why=why,
        priority=at.priority,
        target=str(at.target),
        target_s=at.target.delay_s,
        statistic=at.target.statistic,
        manager=at.manager,
        lend=at.lend,
        min_keep=at.min_keep,
        shedding=at.shedding,
        quota=share.quota,
        original=original,
        said=share.reason,
        slowed_s=share.interval_s,
        pace=pace,
        queries=tuple(query.name for query in own),
    )


def _measured(pace: Pace, delays: Sequence[Delays], target: Target) -> Pace:
    """By when Spark committed the batches, where that is known: else as the gates saw them end."""
    measured_s = delay_s(delays, target)
    return pace if measured_s is None else replace(pace, delay_s=measured_s)


def _together(paces: Sequence[Pace]) -> Pace:
    """Of a class: what its queries do."""
    known = [(pace.delay_s, pace.kept_per_s) for pace in paces if pace.delay_s is not None]
    kept_per_s = sum(per_s for _, per_s in known)
    worst = [pace.worst_s for pace in paces if pace.worst_s is not None]
    return Pace(
        delay_s=sum(d * n for d, n in known) / kept_per_s if kept_per_s > 0.0 else None,
        worst_s=max(worst, default=None),
        offered_per_s=sum(pace.offered_per_s for pace in paces),
        kept_per_s=sum(pace.kept_per_s for pace in paces),
        shed_per_s=sum(pace.shed_per_s for pace in paces),
        waiting_tuples=sum(pace.waiting_tuples for pace in paces),
        waiting_s=max((pace.waiting_s for pace in paces), default=0.0),
    )


def _trouble(query: QueryView) -> tuple[float, float]:
    return query.pace.shed_per_s, query.pace.delay_s or 0.0


def _reason(last: Decided | None) -> str:
    return last.decision.reason if last else ""


def _load(last: Decided | None, pace: Pace) -> float:
    prices = last.measurement.prices if last else None
    if prices is None:
        return 0.0
    return prices.pace * (prices.kept_s + prices.scanned_s) * pace.offered_per_s


def _cause(queries: Sequence[QueryView], classes: Sequence[ClassView]) -> str | None:
    """Whose load is the largest, where some class is in trouble."""
    if not any(view.health in ("late", "missed", "shedding") for view in classes):
        return None
    largest = max(queries, key=lambda query: query.load, default=None)
    return largest.name if largest is not None and largest.load > 0.0 else None

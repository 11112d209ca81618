"""A flow that can be watched without Spark: the same gates and class control, in virtual time.

Three classes as in examples/classes.yaml; clicks alone are more than the machine takes, between
seconds 60 and 150.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from spillway.classes.control import ClassTerms
from spillway.errors import SpillwayError, unknown_name
from spillway.flow.flow import Flow
from spillway.gate.options import GateOptions
from spillway.hosts.spark.driver.settings import Settings
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.journal.entries import Entry, Event
from spillway.journal.files import FileJournal
from spillway.model import Target
from spillway.watch.metrics import Metrics
from spillway.watch.preview import Preview, previewed
from spillway.watch.standing import ClassStanding, QueryStanding, Standing, snapshot_of
from spillway.watch.story import Story
from spillway.watch.tokens import Token
from spillway.watch.views import Audit, Flows, Override, Snapshot, StreamView

SECRET, LOOKS = "a-secret-of-ada-lovelace", "another-secret-of-grafana"
TOKENS = (
    Token(name="ada", secret=SECRET),
    Token(name="grafana", secret=LOOKS, may_change=False),
)
BEGAN_S = 1_750_000_000.0
BURST_S = (60.0, 150.0)
FLOW = Flow.model_validate(
    {
        "streams": {name: {"source": "synthetic"} for name in ("payments", "orders", "clicks")},
        "classes": {
            "gold": {"priority": 6, "delay": "p99 3s"},
            "silver": {"priority": 3, "delay": "3s"},
            "bronze": {"priority": 1, "delay": "4s"},
        },
        "queries": {
            "fraud": {"class": "gold", "sql": "SELECT key FROM payments"},
            "volume": {"class": "silver", "sql": "SELECT key FROM orders"},
            "trends": {"class": "bronze", "sql": "SELECT key FROM clicks"},
        },
    }
)
READS = {"fraud": "payments", "volume": "orders", "trends": "clicks"}
RATES = {"fraud": 2_000.0, "volume": 2_000.0, "trends": 100_000.0}
BURST_PER_S = 900_000.0


def _query(name: str, options: GateOptions) -> VirtualQuery:
    knots_s = np.array([0.0, BURST_S[0], BURST_S[1], 4000.0])
    per_s = np.array([RATES[name], BURST_PER_S if name == "trends" else RATES[name], RATES[name]])
    counts = np.concatenate(([0.0], np.cumsum(per_s * np.diff(knots_s))))
    cost = BatchCost(fixed_s=0.25, kept_s=3e-6, scanned_s=1e-8, noise=0.08)
    return VirtualQuery(name=name, log=CurveLog(knots_s, counts), options=options, cost=cost)


@dataclass
class VirtualWatch:
    """Keeps to `Watched`. `advance` lets time pass; a look sees the moment that it reached."""

    folder: Path
    story: Story = field(default_factory=Story)

    def __post_init__(self) -> None:
        self.settings = Settings(FLOW, self.folder / "overrides.json")
        self.metrics = Metrics()
        self.journal = FileJournal(self.folder / "journal.jsonl")
        self.host = self._host()
        self.tell([self._event("started", queries=list(READS), classes=self._classes(), cores=2)])
        self._told = self._balanced = 0
        self.advance(1.0)

    def advance(self, seconds: float) -> None:
        self.host.advance(self.host.now_s + seconds)
        decided = [
            replace(d, measurement=replace(d.measurement, time_s=BEGAN_S + d.measurement.time_s))
            for d in self.host.decided[self._told :]
        ]
        self._told = len(self.host.decided)
        self.tell(decided)
        self.metrics.count(decided)
        for at_s, shares in self.host.quotas[self._balanced :]:
            for name, new in shares.items():
                given = {"class_name": name, "quota": new.quota, "reason": new.reason}
                self.tell([Event(time_s=BEGAN_S + at_s, kind="quota", fields=given)])
        self._balanced = len(self.host.quotas)

    def tell(self, entries: Sequence[Entry]) -> None:
        """What is told is journalled, as a driver does."""
        for entry in entries:
            if isinstance(entry, Event):
                self.journal.event(entry.time_s, entry.kind, **entry.fields)
            else:
                self.journal.record(entry.measurement, entry.decision)
        self.story.tell(entries)

    # -- as it is watched

    def look(self) -> Snapshot:
        now_s = BEGAN_S + self.host.now_s
        standing = Standing(
            flow="virtual",
            state="running",
            ready=all(lane.finished for lane in self.host.lanes.values()),
            started_s=BEGAN_S,
            control_looked_s=now_s,
            cores=2,
            policy=self.settings.policy,
            streams=tuple(StreamView(name=s, source="synthetic") for s in READS.values()),
            classes={name: self._class(name) for name in self.settings.classes},
            queries={name: self._standing(name) for name in READS},
            overrides=self._overrides(),
        )
        snapshot = snapshot_of(self.story, standing, now_s)
        self.metrics.show(snapshot)
        return snapshot

    def metrics_text(self) -> bytes:
        return self.metrics.text()

    def change(self, changes: Mapping[str, object], by: str) -> None:
        for one in self.settings.change(changes, by, BEGAN_S + self.host.now_s):
            kind = "cleared" if one.cleared else "changed"
            self.tell([self._event(kind, key=one.key, to=one.to, was=one.was, by=by)])
        for name in self.settings.classes:
            self.host.control.change(name, self.settings.terms(name))
        self.host.control.use(self.settings.policy)

    def preview(self, targets: Mapping[str, str]) -> Preview:
        for name in targets:
            if name not in FLOW.classes:
                raise unknown_name("class", name, FLOW.classes)
        return previewed(self.folder / "journal.jsonl", self.story.started, targets)

    def instances(self) -> dict[str, list[dict[str, Any]]]:
        return {}

    def change_instances(
        self, query: str, add: list[dict[str, Any]], remove: list[int], by: str
    ) -> list[int]:
        raise SpillwayError(f"'{query}' is no query with a template: there are none")

    # -- how it stands

    def _host(self) -> VirtualHost:
        queries = []
        for name, query in FLOW.queries.items():
            given = FLOW.classes[query.class_name]
            options = GateOptions.parse({"delay": given.delay, "class": query.class_name})
            queries.append(_query(name, replace(options, query=name)))
        terms: dict[str, ClassTerms] = {n: self.settings.terms(n) for n in FLOW.classes}
        return VirtualHost(queries, terms, cores=2, cycle_periods=2, seed=1)

    def _standing(self, name: str) -> QueryStanding:
        lane = self.host.lanes[name]
        totals, waiting = lane.at.totals, 0
        if name in self.story.last:
            waiting = self.story.last[name].measurement.backlog.pending_tuples
        return QueryStanding(
            class_name=FLOW.queries[name].class_name,
            state="running" if lane.finished else "warming up",
            reads=(READS[name],),
            writes="console",
            totals=Flows(
                offered=totals.admitted + totals.shed + waiting,
                admitted=totals.admitted,
                shed=totals.shed,
                waiting=waiting,
            ),
            audit=Audit(verdict="exact", batches=len(lane.finished)),
        )

    def _class(self, name: str) -> ClassStanding:
        given = self.settings.classes[name]
        return ClassStanding(
            priority=given.priority,
            target=Target.parse(given.delay),
            manager=self.settings.value(f"{name}.manager"),
            lend=given.lend,
            min_keep=given.min_keep,
            shedding=given.shedding,
        )

    def _classes(self) -> dict[str, Any]:
        return {name: c.model_dump() for name, c in FLOW.classes.items()}

    def _overrides(self) -> tuple[Override, ...]:
        return tuple(
            Override(
                key=key,
                value=self.settings.value(key),
                file_value=self.settings.in_file(key),
                by=override.by,
                time_s=override.time_s,
            )
            for key, override in self.settings.overrides.items()
        )

    def _event(self, kind: str, **fields: object) -> Event:
        now_s = self.host.now_s if hasattr(self, "host") else 0.0
        return Event(time_s=BEGAN_S + now_s, kind=kind, fields=fields)

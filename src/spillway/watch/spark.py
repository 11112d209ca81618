"""A flow on Spark as it can be watched: what its journal tells, and how its queries stand now."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from spillway.errors import SpillwayError, unknown_name
from spillway.gate.offsets import Totals
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.executors import live_cores
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch
from spillway.journal.entries import Entry
from spillway.journal.recent import recent_entries
from spillway.model import Target
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import add_instances
from spillway.watch.audits import LedgerAudit, audit_of, sum_of, totals_at_end
from spillway.watch.metrics import Metrics
from spillway.watch.preview import Preview, previewed
from spillway.watch.standing import ClassStanding, QueryStanding, Standing, snapshot_of
from spillway.watch.story import RECENT_S, Story
from spillway.watch.views import Flows, Override, Snapshot, StreamView


class SparkWatch:
    """`entry` and `batch` are called by the run and only put down what happened; `look` is called
    by the watch, about once a second, and makes a snapshot of it."""

    def __init__(self, application: Application, name: str) -> None:
        self._application, self._name = application, name
        self._news: SimpleQueue[Entry | tuple[BatchProgress, Sequence[DeliveredBatch]]]
        self._news = SimpleQueue()
        self.story = Story()
        self._metrics = Metrics()
        self._recent: dict[str, deque[DeliveredBatch]] = {}
        flow, folder = application.flow, application.folder
        self._ledgers = {
            query: [LedgerAudit(folder.ledger(query, s)) for s in application.streams_of(query)]
            for query in flow.queries
        }
        self._streams = tuple(
            StreamView(
                name=stream,
                source=given.source or "",
                written_by=stream if stream in flow.queries else None,
            )
            for stream, given in flow.streams.items()
        )
        with suppress(SpillwayError, OSError):  # of the run before: curves begin with it
            self.story.tell(recent_entries(folder.journal))
        self._begin_counts()
        application.listeners.append(self)

    def _begin_counts(self) -> None:
        flow, folder = self._application.flow, self._application.folder
        for query, given in flow.queries.items():
            for stream in self._application.streams_of(query):
                totals = totals_at_end(folder.ledger(query, stream))
                lost = self.story.losses.get(f"{query}/{stream}", {})
                labels = (query, given.class_name, stream)
                self._metrics.begin(labels, totals, lost.get("malformed_tuples", 0))

    # -- told by the run

    def entry(self, entry: Entry) -> None:
        self._news.put(entry)

    def batch(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None:
        self._news.put((progress, found))

    # -- asked by the watch

    def look(self) -> Snapshot:
        now_s = time.time()
        self._take_news()
        for ledgers in self._ledgers.values():
            for ledger in ledgers:
                ledger.look()
        standing = self._standing(now_s)
        self.story.original({name: c.priority for name, c in standing.classes.items()})
        snapshot = snapshot_of(self.story, standing, now_s)
        self._metrics.show(snapshot)
        return snapshot

    def metrics_text(self) -> bytes:
        return self._metrics.text()

    def change(self, changes: Mapping[str, object], by: str) -> None:
        self._application.change_all(changes, by)

    def preview(self, targets: Mapping[str, str]) -> Preview:
        for name in targets:
            if name not in self._application.classes:
                raise unknown_name("class", name, self._application.classes)
        return previewed(self._application.folder.journal, self.story.started, targets)

    def change_instances(
        self, query: str, add: list[dict[str, Any]], remove: list[int], by: str
    ) -> list[int]:
        if query not in self._application.templates:
            raise unknown_name("query with a template", query, self._application.templates)
        store = InstanceStore(self._application.folder.instances(query))
        added = add_instances(store, query, add) if add else []
        if remove:
            store.remove(remove)
        self._application.event("instances", query=query, added=added, removed=remove, by=by)
        return added

    def instances(self) -> dict[str, list[dict[str, Any]]]:
        folder = self._application.folder
        return {
            name: [
                {"query_id": i.query_id, **i.values}
                for i in InstanceStore(folder.instances(name)).active()
            ]
            for name in self._application.templates
            if folder.instances(name).exists()
        }

    def _take_news(self) -> None:
        entries: list[Entry] = []
        with suppress(Empty):
            while True:
                news = self._news.get_nowait()
                if isinstance(news, tuple):
                    self._delivered(*news)
                else:
                    entries.append(news)
        self.story.tell(entries)
        self._metrics.count(entries)

    def _delivered(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None:
        query = progress.query
        self._recent.setdefault(query, deque(maxlen=1000)).extend(found)
        given = self._application.flow.queries.get(query)
        if given is not None:
            self._metrics.batch((query, given.class_name), progress, list(found))

    def _standing(self, now_s: float) -> Standing:
        application = self._application
        states, stopping = application.states, application.queries.stopping.is_set()
        started = all(name in states.begun_s for name in application.flow.queries)
        return Standing(
            flow=self._name,
            state="stopped" if stopping else "running" if started else "starting",
            ready=not stopping and all(name in self._recent for name in application.flow.queries),
            started_s=min(states.begun_s.values(), default=None),
            control_looked_s=application.looked_s,
            cores=live_cores(application.spark.sparkContext),
            policy=application.settings.policy,
            streams=self._streams,
            classes={name: self._class(name) for name in application.classes},
            queries={name: self._query(name, now_s) for name in application.flow.queries},
            overrides=self._overrides(),
        )

    def _overrides(self) -> tuple[Override, ...]:
        settings = self._application.settings
        return tuple(
            Override(
                key=key,
                value=settings.value(key),
                file_value=settings.in_file(key),
                by=override.by,
                time_s=override.time_s,
            )
            for key, override in dict(settings.overrides).items()
        )

    def _class(self, name: str) -> ClassStanding:
        application = self._application
        given = application.classes[name]
        return ClassStanding(
            priority=given.priority,
            target=Target.parse(given.delay),
            manager=application.settings.value(f"{name}.manager"),
            lend=given.lend,
            min_keep=given.min_keep,
            shedding=given.shedding,
            condition=application.conditions.get(name),
        )

    def _query(self, name: str, now_s: float) -> QueryStanding:
        application = self._application
        given, seen = application.flow.queries[name], application.progress.get(name)
        batches = self._recent.get(name, ())
        span_s = max(RECENT_S, 2.5 * batches[-1].duration_s) if batches else RECENT_S
        recent = (batch for batch in batches if batch.ended_s > now_s - span_s)
        return QueryStanding(
            class_name=given.class_name,
            state=application.states.of(name),
            reads=tuple(application.streams_of(name)),
            writes=name if name in application.flow.streams else given.sink.type,
            span_s=span_s,
            delays=tuple(batch.delays for batch in recent if batch.kept_tuples > 0),
            phases_s=seen.phases_s if seen else None,
            totals=self._totals(name),
            audit=audit_of(self._ledgers.get(name, ())),
            restarts=application.restarts(name),
            dry_run=given.dry_run,
            budget=application.conditions.get(f"queries.{name}"),
            is_template=name in application.templates,
        )

    def _reported(self, name: str) -> Totals:
        said = self._application.dispatcher.last_report(name)
        if said is None:
            return Totals()
        consumed = said.admitted_tuples + said.shed_tuples
        return Totals(offered=consumed, admitted=said.admitted_tuples, shed=said.shed_tuples)

    def _totals(self, name: str) -> Flows:
        """Of the ledgers; what is waiting, of the gates. A query that joined has no ledger here."""
        streams = self._application.streams_of(name)
        found = self._reported(name) if name not in self._ledgers else sum_of(self._ledgers[name])
        losses = [self.story.losses.get(f"{name}/{stream}", {}) for stream in streams]
        waiting = self._application.states.waiting(name) or 0
        return Flows(
            offered=found.admitted + found.shed + waiting,
            admitted=found.admitted,
            shed=found.shed,
            waiting=waiting,
            lost=found.lost,
            malformed=sum(loss.get("malformed_tuples", 0) for loss in losses),
            vanished=sum(loss.get("vanished_tuples", 0) for loss in losses),
        )

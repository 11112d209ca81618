"""A cluster as it can be watched: what its control log says, and what its coordinator tells."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from spillway.errors import SpillwayError
from spillway.flow.flow import ServiceClass
from spillway.hosts.cluster.asking import ask
from spillway.hosts.cluster.control_log import AwayError
from spillway.hosts.cluster.messages import Request, Seen
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.reading import Heard, Reading
from spillway.hosts.spark.driver.terms import CHANGEABLE, changed_class
from spillway.journal.entries import Event
from spillway.model import Target
from spillway.watch.cluster_metrics import ClusterMetrics
from spillway.watch.cluster_views import (
    Wiring,
    moves_of,
    node_seen,
    pinned_name,
    queries_seen,
    values_of,
)
from spillway.watch.preview import Preview
from spillway.watch.standing import ClassStanding, QueryStanding, Standing, snapshot_of
from spillway.watch.story import Story
from spillway.watch.views import ClusterSeen, Override, Snapshot

_LONGEST_S = 30.0  # that one report speaks for


class ClusterWatch:
    """`entry` is called by the coordinator. All else it reads from the log by itself, so that a
    coordinator which stands by shows the same."""

    def __init__(self, place: Place) -> None:
        self._place, self._reading, self._wiring = place, Reading(place), Wiring(place.flow)
        self.story, self._metrics = Story(), ClusterMetrics()
        self._began_s = time.time()
        self._led_at, self._led_s = -1, 0.0
        self._before: dict[str, tuple[str, Seen]] = {}  # query -> what which life said last
        self._away: str | None = None

    def entry(self, event: Event) -> None:
        self.story.tell([event])

    # -- asked by the watch

    def look(self) -> Snapshot:
        now_s, reading = time.time(), self._reading
        try:
            for heard in reading.read_on(now_s):
                self._count(heard)
            self._away = None
        except AwayError as error:
            self._away = str(error)
        if reading.led_at != self._led_at:
            self._led_at, self._led_s = reading.led_at, now_s
        self.story.original({name: c.priority for name, c in reading.classes.items()})
        self.story.tell(self._shares(now_s))
        snapshot = snapshot_of(self.story, self._standing(), now_s, self._cluster(now_s))
        self._metrics.show(snapshot)
        return snapshot

    def metrics_text(self) -> bytes:
        return self._metrics.text()

    def change(self, changes: Mapping[str, object], by: str) -> None:
        """Each is looked at before the first is asked of the leader; None: as in the file."""
        asked = {key: self._text(key, value) for key, value in changes.items()}
        for key, value in asked.items():
            changed_class(key, value, self._reading.classes)
        for key, value in asked.items():
            ask(self._place, Request(kind="set", name=key, value=value, by=by))

    def preview(self, targets: Mapping[str, str]) -> Preview:
        raise SpillwayError("a preview decides a node's journal again: it is on that node's page")

    def instances(self) -> Mapping[str, list[dict[str, Any]]]:
        return {}

    def change_instances(
        self, query: str, add: list[dict[str, Any]], remove: list[int], by: str
    ) -> list[int]:
        raise SpillwayError("a query on many nodes has no template: there are no instances")

    # -- how it stands

    def _text(self, key: str, value: object) -> str:
        name, _, setting = key.partition(".")
        in_file = self._place.flow.classes.get(name)
        return str(getattr(in_file, setting, value) if value is None else value)

    def _count(self, heard: Heard) -> None:
        """A report stands for the time since the one before it, if it is of the same life."""
        life, classes = heard.report.life, self._reading.classes
        for view in heard.report.queries:
            seen = heard.report.seen.get(view.name)
            if seen is None or view.class_name not in classes:
                continue
            pinned = heard.report.is_pinned
            name = pinned_name(heard.node, view.name) if pinned else view.name
            before_life, before = self._before.get(name, ("", seen))
            self._before[name] = (life, seen)
            if before_life == life and heard.since_s is not None:
                since_s = max(heard.since_s, heard.at_s - _LONGEST_S)
                target_s = Target.parse(classes[view.class_name].delay).delay_s
                values = values_of(view, seen, before, heard.at_s - since_s, target_s)
                self.story.reported(name, view.class_name, (since_s, heard.at_s), values)

    def _shares(self, now_s: float) -> Iterator[Event]:
        """What each class owns of all nodes together."""
        hosts = [report.host for report in self._reading.reports.values() if report.host]
        total = sum(host.capacity.cpu_cores for host in hosts)
        for name in self._reading.classes if total > 0.0 else ():
            owned = sum(
                known.quota * host.capacity.cpu_cores
                for host in hosts
                for known in host.classes
                if known.name == name
            )
            if owned > 0.0:  # some node has said so
                fields = {"class_name": name, "quota": owned / total}
                yield Event(time_s=now_s, kind="quota", fields=fields)

    def _standing(self) -> Standing:
        reading, wiring = self._reading, self._wiring
        queries = queries_seen(reading, wiring)
        leads, ended = bool(reading.leadership.leader), reading.leadership.ended
        hosts = [report.host for report in reading.reports.values() if report.host]
        return Standing(
            flow=self._place.name,
            state="stopped" if ended else "running" if leads else "starting",
            ready=leads and all(query.node is not None for query in queries.values()),
            started_s=self._began_s,
            control_looked_s=self._led_s if leads else None,
            cores=round(sum(host.capacity.cpu_cores for host in hosts)),
            policy=self._place.flow.control.policy,
            streams=wiring.streams,
            classes={name: _class(name, c, queries) for name, c in reading.classes.items()},
            queries=queries,
            overrides=tuple(self._overrides()),
        )

    def _overrides(self) -> Iterator[Override]:
        in_file = self._place.flow.classes
        for name, given in self._reading.classes.items():
            for key in CHANGEABLE if name in in_file else ():
                value, was = str(getattr(given, key)), str(getattr(in_file[name], key))
                if value != was:
                    yield Override(
                        key=f"{name}.{key}",
                        value=value,
                        file_value=was,
                        by="a user of the cluster",
                        time_s=self._began_s,
                    )

    def _cluster(self, now_s: float) -> ClusterSeen:
        reading = self._reading
        nodes = (node_seen(n, order, reading, now_s) for n, order in sorted(reading.orders.items()))
        return ClusterSeen(
            leader=reading.leadership.leader or None,
            nodes=tuple(nodes),
            moves=moves_of(reading.queries),
            away=self._away,
        )


def _class(name: str, given: ServiceClass, queries: Mapping[str, QueryStanding]) -> ClassStanding:
    waiting = [n for n, q in queries.items() if q.class_name == name and q.node is None]
    return ClassStanding(
        priority=given.priority,
        target=Target.parse(given.delay),
        manager=given.manager if isinstance(given.manager, str) else str(given.manager["law"]),
        lend=given.lend,
        min_keep=given.min_keep,
        shedding=given.shedding,
        condition=f"without a node: {', '.join(waiting)}" if waiting else None,
    )

"""What Prometheus scrapes. Labels are names of the flow file and fixed words: never data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from spillway.gate.delays import excess
from spillway.gate.offsets import Offset, Totals
from spillway.hosts.spark.driver.progress import BatchProgress, DeliveredBatch, end_offsets
from spillway.journal.entries import Entry
from spillway.model import Decided
from spillway.watch.views import ClassView, QueryView, Snapshot

CONTENT_TYPE = CONTENT_TYPE_LATEST
DELAYS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0, 20.0, 60.0, 300.0)
BATCHES_S = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
SILENT_S = 10.0  # without a look at the classes the control loop counts as gone
_QUERY, _GATE, _CLASS = ("query", "class"), ("query", "class", "stream"), ("class",)
_NOT_RUNNING = ("starting", "restarting", "warming up")

Floats = npt.NDArray[np.float64]
Labels = tuple[str, ...]
_Found = Mapping[Labels, float]


class _Buckets:
    """A histogram that takes many values at once."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = np.array(bounds)
        self.within: Floats = np.zeros(len(bounds))  # at or below each bound
        self.count = self.total = 0.0

    def add(self, within: Floats, count: float, total: float) -> None:
        self.within += within
        self.count += count
        self.total += total

    def lines(self) -> list[tuple[str, float]]:
        known = [(str(float(b)), float(n)) for b, n in zip(self.bounds, self.within, strict=True)]
        return [*known, ("+Inf", self.count)]


class Metrics(Collector):
    """What happened is counted; how things stand is read from the last snapshot."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._snapshot: Snapshot | None = None
        self._totals: dict[Labels, Totals] = {}  # by query, class and stream
        self._malformed: dict[str, float] = {}  # by gate
        self._decisions: Counter[Labels] = Counter()
        self._restarts: Counter[str] = Counter()
        self._delays: dict[Labels, _Buckets] = {}
        self._durations: dict[Labels, _Buckets] = {}

    def text(self) -> bytes:
        return generate_latest(self._registry)

    # -- told

    def begin(self, labels: Labels, totals: Totals, malformed: float) -> None:
        """Where a gate (query, class, stream) stood when the driver before this one ended. A count
        that began at zero and jumped to it would look like as many tuples in a moment."""
        self._totals[labels] = totals
        self._malformed[f"{labels[0]}/{labels[2]}"] = malformed

    def count(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Decided):
                self._decisions[entry.measurement.query, entry.measurement.class_name] += 1
            elif entry.kind == "restarted":
                self._restarts[str(entry.fields["query"])] += 1
            elif entry.kind == "losses":
                self._malformed[str(entry.fields["gate"])] = entry.fields["malformed_tuples"]

    def batch(self, labels: Labels, progress: BatchProgress, found: list[DeliveredBatch]) -> None:
        """`labels` are its query and class."""
        if found:
            took_s = progress.duration_s
            buckets = self._durations.setdefault(labels, _Buckets(BATCHES_S))
            buckets.add(np.where(took_s <= buckets.bounds, 1.0, 0.0), 1.0, took_s)
        delays = self._delays.setdefault(labels, _Buckets(DELAYS_S))
        for batch in found:
            above = [excess(batch.delays, bound_s)[0] for bound_s in DELAYS_S]
            kept = float(batch.kept_tuples)
            delays.add(kept - np.array(above), kept, kept * batch.mean_delay_s)
        for offset in end_offsets(progress):
            self._totals[*labels, _stream_of(offset)] = offset.totals

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    # -- scraped

    def collect(self) -> Iterator[Metric]:
        yield from self._rows()
        yield _counted("decisions", "Decisions of load managers.", _QUERY, dict(self._decisions))
        restarts: _Found = {(query,): count for query, count in self._restarts.copy().items()}
        yield _counted("query_restarts", "Queries started again.", ("query",), restarts)
        text = "From a tuple's arrival until its batch was committed."
        yield _histogram("delay_seconds", text, self._known(self._delays, DELAYS_S))
        text = "Planning, execution and commit of batches with tuples."
        yield _histogram("batch_duration_seconds", text, self._known(self._durations, BATCHES_S))
        if self._snapshot is not None:
            yield from _gauges(self._snapshot)

    def _known(
        self, found: Mapping[Labels, _Buckets], bounds: Sequence[float]
    ) -> Mapping[Labels, _Buckets]:
        """From the start on, at zero: a rate of what appears with its first value is wrong."""
        queries = {labels[:2] for labels in _gates(self._snapshot)}
        return {labels: _Buckets(bounds) for labels in sorted(queries)} | dict(found)

    def _rows(self) -> Iterator[Metric]:
        totals = {labels: Totals() for labels in _gates(self._snapshot)} | dict(self._totals)
        rows = {(*labels, "admitted"): at.admitted for labels, at in totals.items()}
        rows |= {(*labels, "shed"): at.shed for labels, at in totals.items()}
        text = "Tuples by what became of them, since their query's first start."
        yield _counted("rows", text, (*_GATE, "outcome"), rows)
        lost = {labels: at.lost for labels, at in totals.items()}
        text = "Tuples that their log dropped before they were read: part of shed."
        yield _counted("lost_rows", text, _GATE, lost)
        bad = {labels: self._malformed.get(f"{labels[0]}/{labels[2]}", 0.0) for labels in totals}
        text = "Records that could not be read: part of admitted."
        yield _counted("malformed_rows", text, _GATE, bad)


def _gates(now: Snapshot | None) -> list[Labels]:
    queries = () if now is None else now.queries
    return [(q.name, q.class_name, stream) for q in queries for stream in q.reads]


def _stream_of(offset: Offset) -> str:
    return offset.gate.partition("/")[2] or offset.gate


def _gauges(now: Snapshot) -> Iterator[Metric]:
    yield from controller(now)
    yield from of_classes(now)
    yield from _of_queries({(view.name, view.class_name): view for view in now.queries})


def controller(now: Snapshot) -> Iterator[Metric]:
    looked_s = now.control_looked_s
    up: _Found = {(): float(looked_s is not None and now.time_s - looked_s < SILENT_S)}
    yield gauge("controller_up", "1 while the control loop looks at the classes.", (), up)


def of_classes(now: Snapshot) -> Iterator[Metric]:
    classes: dict[Labels, ClassView] = {(view.name,): view for view in now.classes}
    targets: _Found = {(view.name, view.statistic): view.target_s for view in now.classes}
    yield gauge("delay_target_seconds", "As promised.", ("class", "statistic"), targets)
    delays = {k: c.pace.delay_s for k, c in classes.items() if c.pace.delay_s is not None}
    yield gauge("delay_current_seconds", "The target's statistic, lately.", _CLASS, delays)
    quotas = {labels: view.quota for labels, view in classes.items()}
    yield gauge("class_quota_ratio", "Share of the machine now.", _CLASS, quotas)
    originals = {labels: view.original for labels, view in classes.items()}
    yield gauge("class_priority_ratio", "Share by priority.", _CLASS, originals)
    least = {k: 1.0 if c.shedding == "paused" else c.min_keep for k, c in classes.items()}
    yield gauge("class_min_keep_ratio", "Never keeps less; 1: paused.", _CLASS, least)


def _of_queries(queries: Mapping[Labels, QueryView]) -> Iterator[Metric]:
    backlog = {labels: view.pace.waiting_tuples for labels, view in queries.items()}
    yield gauge("backlog_rows", "Tuples that wait at the gates.", _QUERY, backlog)
    ages = {labels: view.pace.waiting_s for labels, view in queries.items()}
    yield gauge("backlog_age_seconds", "Age of the oldest that waits.", _QUERY, ages)
    parts = {
        (*labels, part): seconds
        for labels, view in queries.items()
        for part, seconds in (
            ("fixed", view.batch.fixed_s),
            ("kept", view.batch.kept_s),
            ("scanned", view.batch.scanned_s),
        )
    }
    yield gauge("batch_cost_seconds", "A batch, by what takes it.", (*_QUERY, "part"), parts)
    exact = {k: float(view.audit.verdict != "not exact") for k, view in queries.items()}
    yield gauge("ledger_exact", "0 where a ledger does not add up.", _QUERY, exact)
    running = {k: float(view.state not in _NOT_RUNNING) for k, view in queries.items()}
    yield gauge("query_running", "1 while it runs.", _QUERY, running)


def _counted(name: str, text: str, labels: Labels, found: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(f"spillway_{name}", text, labels=labels)
    for values, total in found.items():
        family.add_metric(values, float(total))
    return family


def gauge(name: str, text: str, labels: Labels, found: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(f"spillway_{name}", text, labels=labels)
    for values, value in found.items():
        family.add_metric(values, float(value))
    return family


def _histogram(name: str, text: str, found: Mapping[Labels, _Buckets]) -> Metric:
    family = HistogramMetricFamily(f"spillway_{name}", text, labels=_QUERY)
    for values, buckets in found.items():
        family.add_metric(values, buckets.lines(), buckets.total)
    return family

"""A flow on Spark: gates in front of its queries, the control loop beside them, and a supervisor.

Everything that must survive a crash lives in one folder: checkpoints, ledgers and the journal.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from pyspark.sql import SparkSession

from spillway.classes.control import ClassControl
from spillway.classes.turns import batches_in_flight
from spillway.clock import Clock, WallClock
from spillway.errors import SpillwayError
from spillway.estimates.flow import check_answers
from spillway.flow.derived import expanded
from spillway.flow.flow import Flow, Query, ServiceClass
from spillway.flow.links import all_linked, linked
from spillway.flow.sql import read_by
from spillway.hosts.spark.driver.answers import Answers
from spillway.hosts.spark.driver.channel import ChangeQuery, ChannelServer, refuse_query
from spillway.hosts.spark.driver.conditions import Conditions
from spillway.hosts.spark.driver.control_loop import ControlLoop
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.driver.executors import live_cores
from spillway.hosts.spark.driver.gates import Gates
from spillway.hosts.spark.driver.passed import PassedRows
from spillway.hosts.spark.driver.progress import (
    BatchProgress,
    DeliveredBatch,
    ProgressMonitor,
    delivered,
)
from spillway.hosts.spark.driver.queries import Queries
from spillway.hosts.spark.driver.scaling import Scaling, scaling_of
from spillway.hosts.spark.driver.settings import POLICY, Changes, Settings
from spillway.hosts.spark.driver.states import States
from spillway.hosts.spark.driver.supervision import LossWatch
from spillway.hosts.spark.files import Folder
from spillway.journal.entries import Entry, Event
from spillway.journal.files import FileJournal
from spillway.model import Decided, Order, Report, Target
from spillway.private import write_private
from spillway.sinks.fence import Fence
from spillway.templates.instances import template_of

STOP_WAIT_S = 10.0  # for batches in flight; a longer one is cut short, and run again
BATCHES_KEPT = 20_000  # for the screen and the summary: hours, at one batch a second


class Listener(Protocol):
    """Told of everything as it happens, by whoever lets it happen: it must not take long."""

    def entry(self, entry: Entry) -> None: ...

    def batch(self, progress: BatchProgress, found: Sequence[DeliveredBatch]) -> None: ...


class Application:
    """Starts a flow's queries and keeps them running until `stop`."""

    def __init__(
        self, flow: Flow, spark: SparkSession, folder: Folder, clock: Clock | None = None
    ) -> None:
        check_answers(flow)
        self.flow = flow = all_linked(expanded(flow, folder.root / "streams"))
        self.folder = folder
        self.batches: deque[DeliveredBatch] = deque(maxlen=BATCHES_KEPT)
        self.progress: dict[str, BatchProgress] = {}
        self.journal = FileJournal(folder.journal)
        self.listeners: list[Listener] = []
        self.spark = spark
        self.clock = clock or WallClock()
        self._streams = {n: read_by(n, q, flow) for n, q in flow.queries.items()}
        self.templates = {n: template_of(n, q) for n, q in flow.queries.items() if q.template}
        self._monitor: ProgressMonitor | None = None
        self._lock, self._changing = threading.Lock(), threading.Lock()
        self.fence_of: Callable[[str], Fence | None] = lambda query: None
        self.ruled_by: str | None = None  # who alone changes its classes; None: anybody
        self.moves = False  # its queries may move or change while they run
        self.change_query: ChangeQuery = refuse_query
        self._make_control()
        self.states = States(self.dispatcher.last_report, self.progress, self._counted_s)
        self.answers = Answers(self)
        self.queries = Queries(
            flow.queries, self.answers.start, self.states, self.event, self.clock
        )
        losses, waiting = LossWatch(self.gates.dead_letters()), self.states.waiting
        self._conditions = Conditions(
            flow, self.dispatcher, self.target, waiting, losses, self.event
        )
        self.conditions = self._conditions.now
        self._loop = ControlLoop(self, self._conditions, cores=self._cores)
        self._passed = PassedRows(flow, folder)
        self.scaling: Scaling | None = None  # where the flow says `scale`

    def _make_control(self) -> None:
        self.settings = Settings(self.flow, self.folder.overrides)
        self._cores = cores = live_cores(self.spark.sparkContext)
        control = ClassControl(
            {name: self.settings.terms(name) for name in self.classes},
            self.settings.policy,
            slots=batches_in_flight(cores, [c.priority for c in self.classes.values()]),
            machine=float(cores),
            cycle_periods=self.flow.control.cycle,
            now_s=self.clock.now_s(),
        )
        self.dispatcher = Dispatcher(control, self.clock, self._record)
        self._channel = ChannelServer(
            self.answer,
            self.dispatcher.leave,
            lambda key, to: self.change(key, to, by="spillway set"),
            lambda name, version, only_check: self.change_query(name, version, only_check),
        )
        path = str(self._channel.path)
        self.gates = Gates(self.flow, self.spark, self.folder, self._streams, path)
        self.dispatcher.parallelism = self.gates.tasks_of_a_batch()

    def answer(self, report: Report) -> Order:
        return self.dispatcher.answer(report)

    def _record(self, decided: Decided) -> None:
        self.states.reasons[decided.measurement.query] = decided.decision.reason
        self.journal.record(decided.measurement, decided.decision)
        self._tell(decided)

    def event(self, event: str, **values: object) -> None:
        now_s = self.clock.now_s()
        self.journal.event(now_s, event, **values)
        self._tell(Event(time_s=now_s, kind=event, fields=values))

    def _tell(self, entry: Entry) -> None:
        for listener in self.listeners:
            listener.entry(entry)

    def now_s(self) -> float:
        return self.clock.now_s()

    def target(self, class_name: str) -> Target:
        """In force now."""
        return self.dispatcher.control.classes[class_name].target

    @property
    def classes(self) -> Mapping[str, ServiceClass]:
        """As they are now."""
        return self.settings.classes

    def change(self, key: str, to: object, by: str = "the program") -> None:
        """Change a setting while it runs: ("gold.delay", "1s"), ("control.policy", "absolute").

        None makes it what the flow file says.
        """
        self.change_all({key: to}, by)

    def change_all(self, changes: Changes, by: str) -> None:
        """Raises SpillwayError, with nothing changed, where one of them cannot be."""
        if self.ruled_by not in (None, by):
            raise SpillwayError(
                f"{', '.join(changes)} cannot be changed here: {self.ruled_by} says what holds on"
                " all nodes; use `spillway cluster set` or its page"
            )
        with self._changing:
            changed = self.settings.change(changes, by, self.clock.now_s())
            for name in {one.key.partition(".")[0] for one in changed} & set(self.classes):
                terms = self.settings.terms(name)
                self.dispatcher.change(partial(ClassControl.change, name=name, terms=terms))
            if any(one.key == POLICY for one in changed):
                self.dispatcher.change(lambda control: control.use(self.settings.policy))
        for one in changed:
            kind = "cleared" if one.cleared else "changed"
            self.event(kind, key=one.key, to=one.to, was=one.was, by=by)

    def start(self) -> None:
        """Start every query; the first one that cannot start stops the others."""
        self._monitor = ProgressMonitor(self.spark, self._on_progress)
        write_private(self.folder.channel, str(self._channel.path))
        self._loop.start()
        if self.flow.scale is not None:
            self.scaling = scaling_of(self, self.flow.scale)
            self.listeners.append(self.scaling)
            self.scaling.start()
        for key, why in self.settings.ignored.items():
            self.event("ignored", key=key, why=why)
        self.event(
            "started",
            queries=list(self.flow.queries),
            classes={name: c.model_dump() for name, c in self.classes.items()},
            cores=self._cores,
            control=self.flow.control.model_dump(),
        )
        try:
            self.queries.start()
        except Exception:
            self.stop()
            raise

    def stop(self) -> None:
        """Let the batches in flight end, then stop: a killed batch would only be run again."""
        if self.queries.stopping.is_set():
            return
        self.queries.stopping.set()
        if self.scaling is not None:
            self.scaling.stop()
        self.dispatcher.drain(STOP_WAIT_S)
        self.queries.stop()
        self._loop.join()
        if self._monitor is not None:
            self._monitor.close()
        self._channel.close()
        self.folder.channel.unlink(missing_ok=True)
        self.event("stopped")

    def add(self, name: str, query: Query) -> None:
        """Start one more query while the others run."""
        queries = {**self.flow.queries, name: linked(name, query, self.flow)}
        flow = self.flow.model_copy(update={"queries": queries})
        self._streams[name] = read_by(name, query, flow)
        self._use(flow)
        try:
            self.queries.add(name)
        except Exception:
            self.remove(name)
            raise

    def remove(self, name: str, wait_s: float = 0.0) -> None:
        """Stop one for good; a batch under way may end within `wait_s`, if it does."""
        self.dispatcher.finish(name, wait_s)
        self.queries.remove(name)
        self.dispatcher.left(name)
        self._use(
            self.flow.model_copy(
                update={"queries": {n: q for n, q in self.flow.queries.items() if n != name}}
            )
        )
        self._streams.pop(name, None)
        self.progress.pop(name, None)

    def _use(self, flow: Flow) -> None:
        self.flow = flow
        self.gates.use(flow)
        self._conditions.use(flow)

    def supervise(self) -> None:
        """Restart queries that ended by themselves, delete what all of them have passed."""
        self.queries.supervise()
        self._passed.look(self._streams, self.clock.now_s())

    @property
    def looked_s(self) -> float | None:
        """When the loop last looked at the classes."""
        return self._loop.looked_s

    def restarts(self, name: str) -> int:
        return self.queries.restarts.counts[name]

    def delivered(self, name: str) -> list[DeliveredBatch]:
        """A query's batches so far."""
        return [batch for batch in self.seen()[1] if batch.gate.partition("/")[0] == name]

    def _counted_s(self, name: str) -> float | None:
        return max((batch.ended_s for batch in self.delivered(name)), default=None)

    def streams_of(self, name: str) -> Sequence[str]:
        """What a query reads."""
        return self._streams[name]

    def _on_progress(self, progress: BatchProgress) -> None:
        if progress.query not in self.flow.queries:
            return
        found = delivered(progress)
        with self._lock:
            self.progress[progress.query] = progress
            self.batches += found
        for batch in found:
            self.states.reasons[progress.query] = batch.reason
        for listener in self.listeners:
            listener.batch(progress, found)

    def seen(self) -> tuple[list[BatchProgress], list[DeliveredBatch]]:
        """The last batch of every query, and all batches, at one moment."""
        with self._lock:
            return list(self.progress.values()), list(self.batches)

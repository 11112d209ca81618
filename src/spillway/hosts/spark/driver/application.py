"""A flow on Spark: gates in front of its queries, the control loop beside them, and a supervisor.

Everything that must survive a crash lives in one folder: checkpoints, ledgers and the journal.
"""

import threading
from collections import deque
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.classes.control import ClassControl, ClassTerms
from spillway.classes.policies import POLICIES
from spillway.classes.turns import batches_in_flight
from spillway.clock import Clock, WallClock
from spillway.errors import SpillwayError, unknown_name
from spillway.estimates.budget import verdict
from spillway.estimates.flow import answer_sql, budget_of, check_answers
from spillway.flow.derived import ARRIVAL, expanded
from spillway.flow.flow import Flow, Query, ServiceClass
from spillway.flow.sql import streams_of
from spillway.hosts.spark.driver.channel import ChannelServer
from spillway.hosts.spark.driver.conditions import LossWatch, condition_of
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.driver.folder import Folder
from spillway.hosts.spark.driver.gates import Gates, schema_text
from spillway.hosts.spark.driver.progress import (
    BatchProgress,
    DeliveredBatch,
    ProgressMonitor,
    delivered,
)
from spillway.hosts.spark.driver.restarts import Restarts, cause_of, is_ours
from spillway.hosts.spark.worker.instances import fused_frame
from spillway.journal.files import FileJournal
from spillway.load import laws
from spillway.model import Decided, Target, parse_duration_s
from spillway.sinks import catalog as sinks
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import open_store, template_of

STOP_WAIT_S = (
    10.0  # for batches in flight; a longer one is cut short and replayed at the next start
)
CHANGEABLE = ("priority", "delay", "lend")
BATCHES_KEPT = 20_000  # for the screen and the summary: hours, at one batch a second


class Application:
    """Starts a flow's queries and keeps them running until `stop`."""

    def __init__(
        self, flow: Flow, spark: SparkSession, folder: Folder, clock: Clock | None = None
    ) -> None:
        check_answers(flow)
        self.flow = flow = expanded(flow, folder.root / "streams")
        self.folder = folder
        self.batches: deque[DeliveredBatch] = deque(maxlen=BATCHES_KEPT)
        self.conditions: dict[str, str | None] = {}
        self.progress: dict[str, BatchProgress] = {}
        self.journal = FileJournal(folder.journal)
        self.spark = spark
        self._clock = clock or WallClock()
        self._streams = {n: streams_of(n, q.text, flow) for n, q in flow.queries.items()}
        self._losses = LossWatch(self._dead_letters())
        self.templates = {n: template_of(n, q) for n, q in flow.queries.items() if q.template}
        self._queries: dict[str, StreamingQuery] = {}
        self._restarts = Restarts()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._make_control()

    def _make_control(self) -> None:
        self.classes = dict(self.flow.classes)
        self._cores = cores = max(1, self.spark.sparkContext.defaultParallelism)
        control = ClassControl(
            {name: _terms(c) for name, c in self.classes.items()},
            self.flow.control.policy,
            slots=batches_in_flight(cores, [c.priority for c in self.classes.values()]),
            machine=float(cores),
            cycle_periods=self.flow.control.cycle,
            now_s=self._clock.now_s(),
        )
        self.dispatcher = Dispatcher(control, self._clock, self._record)
        self._channel = ChannelServer(self.dispatcher.answer, self.dispatcher.leave, self.change)
        path = str(self._channel.path)
        self._gates = Gates(self.flow, self.spark, self.folder, self._streams, path)

    def _record(self, decided: Decided) -> None:
        self.journal.record(decided.measurement, decided.decision)

    def target(self, class_name: str) -> Target:
        """In force now."""
        return self.dispatcher.control.classes[class_name].target

    def change(self, key: str, to: str) -> None:
        """Change a class's priority, delay or lend while it runs: ("gold.delay", "1s").

        The policy of the class scheduler is ("control.policy", "absolute").
        """
        if key == "control.policy":
            if to not in POLICIES:
                raise unknown_name("redistribution policy", to, POLICIES)
            self.dispatcher.change(lambda control: control.use(to))
        else:
            self._change_class(key, to)
        self.journal.event(self._clock.now_s(), "changed", key=key, to=to)

    def _change_class(self, key: str, to: str) -> None:
        name, _, setting = key.partition(".")
        if name not in self.classes:
            raise unknown_name("class", name, self.classes)
        if setting not in CHANGEABLE:
            raise unknown_name("setting", setting, CHANGEABLE)
        try:
            changed = ServiceClass.model_validate({**self.classes[name].model_dump(), setting: to})
        except ValidationError as error:
            problem = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise SpillwayError(f"{key} cannot become '{to}': {problem}") from error
        self.classes[name] = changed
        self.dispatcher.change(lambda control: control.change(name, _terms(changed)))

    def start(self) -> None:
        """Start every query; the first one that cannot start stops the others."""
        self._monitor = ProgressMonitor(self.spark, self._on_progress)
        self._loop = threading.Thread(target=self._control, name="spillway-loop", daemon=True)
        try:
            for name in self.flow.queries:
                self._queries[name] = self._start_query(name)
        except Exception:
            self.stop()
            raise
        self.journal.event(
            self._clock.now_s(),
            "started",
            queries=list(self._queries),
            classes={name: c.model_dump() for name, c in self.classes.items()},
            cores=self._cores,
            control=self.flow.control.model_dump(),
        )
        self._loop.start()
        self.folder.channel.write_text(str(self._channel.path))

    def stop(self) -> None:
        """Let the batches in flight end, then stop: a killed batch would only be run again."""
        self._stopping.set()
        self.dispatcher.drain(STOP_WAIT_S)
        for query in self._queries.values():
            query.stop()
        if self._loop.is_alive():
            self._loop.join()
        self._monitor.close()
        self._channel.close()
        self.folder.channel.unlink(missing_ok=True)
        self.journal.event(self._clock.now_s(), "stopped")

    def supervise(self) -> None:
        """Restart queries that ended by themselves: a killed planner or worker ends its query."""
        for name, query in self._queries.items():
            if not query.isActive and not self._stopping.is_set():
                self._restart(name, query)

    def _restart(self, name: str, ended: StreamingQuery) -> None:
        now_s, error = self._clock.now_s(), str(ended.exception() or "ended without an error")
        cause = cause_of(error)
        if is_ours(error) and ended.lastProgress is None and not self._restarts.counts[name]:
            raise SpillwayError(f"query '{name}' does not start: {cause}")
        if self._restarts.due(name, now_s, cause):
            self.journal.event(now_s, "restarted", query=name, error=cause)
            self._queries[name] = self._start_query(name)

    def restarts(self, name: str) -> int:
        return self._restarts.counts[name]

    def result(self, name: str) -> DataFrame:
        """What a query computes from its gates; not started."""
        query = self.flow.queries[name]
        store = self._open_instances(name)
        for stream in self._streams[name]:
            self._gates.read(name, stream).createOrReplaceTempView(stream)
        if store is None:
            return self.spark.sql(answer_sql(name, query, self.flow))
        return fused_frame(self.spark, self.templates[name].template, store)

    def _start_query(self, name: str) -> StreamingQuery:
        query, frame = self.flow.queries[name], self.result(name)
        self._gates.schemas[name] = schema_text(frame, without=ARRIVAL)
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.class_name)
        return sinks.start(frame, name, query, str(self.folder.checkpoint(name)))

    def _open_instances(self, name: str) -> InstanceStore | None:
        if name not in self.templates:
            return None
        given = self.templates[name]
        return open_store(self.folder.instances(name), given.template, given.rows)

    def _dead_letters(self) -> dict[str, Path]:
        """Where each gate's dead letters are."""
        places = {}
        for query, streams in self._streams.items():
            for stream in streams:
                given = self.flow.streams[stream].options.get("dead_letter")
                place = Path(str(given)) if given else self.folder.dead_letters(query, stream)
                places[f"{query}/{stream}"] = place
        return places

    def _on_progress(self, progress: BatchProgress) -> None:
        with self._lock:
            self.progress[progress.query] = progress
            self.batches += delivered(progress)

    def _control(self) -> None:
        period_s = parse_duration_s(self.flow.control.period)
        while not self._stopping.wait(period_s):
            try:
                self._look_at_classes()
            except Exception as error:  # quotas must not freeze for one look that failed
                self.journal.event(self._clock.now_s(), "failed", error=repr(error))

    def _look_at_classes(self) -> None:
        self._follow_cores()
        turns = self.dispatcher.control.turns
        withheld = turns.withheld
        decided = self.dispatcher.period_ended()
        if turns.withheld != withheld:
            now_s = self._clock.now_s()
            self.journal.event(now_s, "room", withheld_slots=turns.withheld)
        self._note_conditions()
        self._note_losses()
        for name, new in decided.items():
            self.journal.event(self._clock.now_s(), "quota", class_name=name, **asdict(new))

    def _follow_cores(self) -> None:
        """Executors come and go: slots, quotas and tasks follow the cores that there are."""
        cores = max(1, self.spark.sparkContext.defaultParallelism)
        if cores != self._cores:
            self._cores = cores
            slots = batches_in_flight(cores, [c.priority for c in self.classes.values()])
            self.dispatcher.change(lambda control: control.resize(slots, float(cores)))
            self.dispatcher.parallelism = self._gates.tasks_of_a_batch()
            self.journal.event(self._clock.now_s(), "cores", cores=cores)

    def _note_conditions(self) -> None:
        for name in self.classes:
            loads, silent_s = self.dispatcher.loads(name), self.dispatcher.silent_s(name)
            condition = condition_of(self.target(name), loads.values(), silent_s)
            if condition != self.conditions.get(name):
                self.conditions[name] = condition
                shown = condition or "as usual"
                self.journal.event(
                    self._clock.now_s(), "condition", class_name=name, condition=shown
                )
        for name, query in self.flow.queries.items():
            said, place = self._budget_verdict(name, query), f"queries.{name}"
            if said != self.conditions.get(place):
                self.conditions[place] = said
                shown = said or "delay target and error budget hold"
                self.journal.event(self._clock.now_s(), "budget", query=name, verdict=shown)

    def _note_losses(self) -> None:
        with self._lock:
            seen = list(self.progress.values())
        for progress in seen:
            for gate, losses in self._losses.changed(progress):
                self.journal.event(self._clock.now_s(), "losses", gate=gate, **asdict(losses))

    def _budget_verdict(self, name: str, query: Query) -> str | None:
        """What the query's last batches say about its error budget."""
        budget = budget_of(query)
        if budget is None:
            return None
        with self._lock:
            recent = [b for b in list(self.batches)[-200:] if b.gate.startswith(f"{name}/")][-10:]
        kept = sum(b.kept_tuples for b in recent)
        if kept == 0:
            return None
        return verdict(
            budget,
            kept_fraction=kept / sum(b.offered_tuples for b in recent),
            delay_s=sum(b.mean_delay_s * b.kept_tuples for b in recent) / kept,
            target_s=self.target(query.class_name).delay_s,
        )


def _terms(service_class: ServiceClass) -> ClassTerms:
    law, _ = service_class.law
    return ClassTerms(
        priority=service_class.priority,
        target=Target.parse(service_class.delay),
        lend=service_class.lend,
        adapts=laws.find(law).adapts,
    )

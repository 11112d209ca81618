"""A flow on Spark: gates in front of its queries, the control loop beside them, and a supervisor.

Everything that must survive a crash lives in one folder: checkpoints, ledgers and the journal.
"""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spillway.classes.capacity import original_shares
from spillway.classes.policies import POLICIES
from spillway.classes.scheduler import ClassScheduler
from spillway.clock import Clock, WallClock
from spillway.errors import SpillwayError, unknown_name
from spillway.estimates.budget import verdict
from spillway.estimates.flow import answer_options, answer_sql, budget_of, check_answers
from spillway.flow.derived import ARRIVAL, expanded
from spillway.flow.flow import Flow, Query, ServiceClass
from spillway.flow.sql import streams_of
from spillway.hosts.spark.driver.balancer import Balancer
from spillway.hosts.spark.driver.channel import ChannelServer
from spillway.hosts.spark.driver.conditions import condition_of
from spillway.hosts.spark.driver.control import ClassState, GateDecides, SparkPlant
from spillway.hosts.spark.driver.delays import DeliveredBatch, delivered
from spillway.hosts.spark.driver.dispatch import Dispatcher
from spillway.hosts.spark.driver.losses import LossWatch
from spillway.hosts.spark.driver.monitor import BatchProgress, ProgressMonitor
from spillway.hosts.spark.driver.restarts import Restarts, cause_of, is_ours
from spillway.hosts.spark.driver.watermarks import with_watermark
from spillway.hosts.spark.session.pools import batches_in_flight, task_slots
from spillway.hosts.spark.worker.instances import fused_frame
from spillway.journal.files import FileJournal
from spillway.load import laws
from spillway.logs.dead_letters import default_place
from spillway.loop import tick
from spillway.model import Target, parse_duration_s
from spillway.ports import LoadManager
from spillway.sinks import catalog as sinks
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import open_store, template_of

STOP_WAIT_S = (
    10.0  # for batches in flight; a longer one is cut short and replayed at the next start
)
SHORT_TASKS = 4  # per core and batch, where a high class waits for the tasks of a low one
CHANGEABLE = ("priority", "delay", "lend")
BATCHES_KEPT = 20_000  # for the screen and the summary: hours, at one batch a second


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Where a flow keeps what must survive."""

    root: Path

    def checkpoint(self, query: str) -> Path:
        return self.root / "checkpoints" / query

    def ledger(self, query: str, stream: str) -> Path:
        return self.root / "ledgers" / f"{query}.{stream}.jsonl"

    def dead_letters(self, query: str, stream: str) -> Path:
        return Path(default_place(f"{query}/{stream}", str(self.ledger(query, stream))))

    def instances(self, query: str) -> Path:
        return self.root / "instances" / f"{query}.jsonl"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def channel(self) -> Path:
        """Holds the path of the running flow's socket (socket paths must be short)."""
        return self.root / "channel"


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
        self._schemas: dict[str, str] = {}  # of what the queries write into folders, by query
        self._restarts = Restarts()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._make_control()

    def _make_control(self) -> None:
        self.classes = dict(self.flow.classes)
        quotas = original_shares({name: c.priority for name, c in self.classes.items()})
        slots = max(1, self.spark.sparkContext.defaultParallelism)
        self._dispatcher = dispatcher = Dispatcher(
            ClassScheduler(quotas),
            self._clock,
            slots=batches_in_flight(slots, len(self.classes)),
            first=self._highest() if len(self.classes) > 1 else None,
        )
        lowest = min(c.priority for c in self.classes.values())
        states = {
            name: ClassState(
                target=Target.parse(c.delay),
                decides_at_gate=c.manager in laws.EVERY_BATCH,
                spared=c.priority > lowest,  # until its load is known
                can_be_spared=c.manager == "predictive",
            )
            for name, c in self.classes.items()
        }
        self.plant = SparkPlant(states, dispatcher, self._clock)
        self.managers: Mapping[str, LoadManager] = {
            name: GateDecides() if c.manager in laws.EVERY_BATCH else laws.make(c.manager)
            for name, c in self.classes.items()
        }
        self._balancer = Balancer(
            self.plant,
            dispatcher,
            self.flow.control.policy,
            machine=float(slots),
            cycle_periods=self.flow.control.cycle,
        )
        self._channel = ChannelServer(self.plant.answer, self.plant.leave, self.change)

    def _highest(self) -> str:
        return min(self.classes, key=lambda name: (-self.classes[name].priority, name))

    def change(self, key: str, to: str) -> None:
        """Change a class's priority, delay or lend while it runs: ("gold.delay", "1s").

        The policy of the class scheduler is ("control.policy", "absolute").
        """
        if key == "control.policy":
            if to not in POLICIES:
                raise unknown_name("redistribution policy", to, POLICIES)
            self._balancer.use(to)
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
        self.plant.classes[name].target = Target.parse(changed.delay)
        if len(self.classes) > 1:
            self._dispatcher.set_first(self._highest())

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
        self.journal.event(self._clock.now_s(), "started", queries=list(self._queries))
        self._loop.start()
        self.folder.channel.write_text(str(self._channel.path))

    def stop(self) -> None:
        """Let the batches in flight end, then stop: a killed batch would only be run again."""
        self._stopping.set()
        self.plant.drain(STOP_WAIT_S)
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
            self._gate(name, query, stream).createOrReplaceTempView(stream)
        if store is None:
            return self.spark.sql(answer_sql(name, query, self.flow))
        return fused_frame(self.spark, self.templates[name].template, store)

    def _start_query(self, name: str) -> StreamingQuery:
        query, frame = self.flow.queries[name], self.result(name)
        self._schemas[name] = _schema_text(frame)
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.class_name)
        return sinks.start(frame, name, query, str(self.folder.checkpoint(name)))

    def _open_instances(self, name: str) -> InstanceStore | None:
        if name not in self.templates:
            return None
        given = self.templates[name]
        return open_store(self.folder.instances(name), given.template, given.rows)

    def _gate(self, name: str, query: Query, stream_name: str) -> DataFrame:
        stream = self.flow.streams[stream_name]
        options = self._gate_options(name, query, stream_name)
        if stream_name in self._schemas:
            options["schema"] = self._schemas[stream_name]
        elif stream.columns is not None:
            options["schema"] = ", ".join(f"`{c}` {t}" for c, t in stream.columns.items())
        frame = self.spark.readStream.format("spillway").options(**options).load()
        if stream.event_time is None:
            return frame
        return with_watermark(frame, stream.event_time, _interval(stream.watermark))

    def _gate_options(self, name: str, query: Query, stream_name: str) -> dict[str, str]:
        stream, service_class = self.flow.streams[stream_name], self.flow.classes[query.class_name]
        options = {key: _text(value) for key, value in stream.options.items()}
        options |= {
            "source": stream.source or "",
            "delay": service_class.delay,
            "manager": _own_manager(service_class),
            "period": self.flow.control.period,
            "policy": stream.policy,
            "dry_run": _text(query.dry_run),
            "checkpoint": str(self.folder.checkpoint(name)),
            "ledger": str(self.folder.ledger(name, stream_name)),
            "channel": str(self._channel.path),
            "class": query.class_name,
            "gate": f"{name}/{stream_name}",
        }
        options |= answer_options(query, stream)
        if query.template is not None:
            options["instances"] = str(self.folder.instances(name))
        if stream.event_time is not None:
            options["heartbeat"] = stream.event_time
        if len(self._streams[name]) > 1:
            options["joint"] = name
        options.setdefault("parallelism", str(self._tasks_of_a_batch()))
        return options

    def _dead_letters(self) -> dict[str, Path]:
        """Where each gate's dead letters are."""
        places = {}
        for query, streams in self._streams.items():
            for stream in streams:
                given = self.flow.streams[stream].options.get("dead_letter")
                place = Path(str(given)) if given else self.folder.dead_letters(query, stream)
                places[f"{query}/{stream}"] = place
        return places

    def _tasks_of_a_batch(self) -> int:
        cores = self.spark.sparkContext.defaultParallelism
        room = task_slots(self.spark.sparkContext.master or "")
        batches = batches_in_flight(cores, len(self.classes))
        waits = len(self.classes) > 1 and (room is None or room < cores * batches)
        return cores * SHORT_TASKS if waits else cores

    def _on_progress(self, progress: BatchProgress) -> None:
        with self._lock:
            self.progress[progress.query] = progress
            self.batches += delivered(progress)

    def _control(self) -> None:
        period_s = parse_duration_s(self.flow.control.period)
        while not self._stopping.wait(period_s):
            measured = tick(self.plant, self.managers, self.journal)
            withheld = self._dispatcher.withheld
            decided = self._balancer.period_ended(self.classes, measured)
            if self._dispatcher.withheld != withheld:
                slots = self._dispatcher.withheld
                self.journal.event(self._clock.now_s(), "room", withheld_slots=slots)
            self._note_conditions()
            self._note_losses()
            for name, new in decided.items():
                self.journal.event(
                    self._clock.now_s(),
                    "quota",
                    class_name=name,
                    quota=new.quota,
                    interval_s=new.interval_s,
                    reason=new.reason,
                )

    def _note_conditions(self) -> None:
        for name, state in self.plant.classes.items():
            loads, silent_s = self.plant.loads(name), self.plant.silent_s(name)
            condition = condition_of(state.target, loads, silent_s)
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
            target_s=self.plant.classes[query.class_name].target.delay_s,
        )


def _own_manager(service_class: ServiceClass) -> str:
    """What the gate runs by itself. For a law of the loop that is the fallback without a loop."""
    return service_class.manager if service_class.manager in laws.EVERY_BATCH else "predictive"


def _interval(duration: str) -> str:
    """A duration as Spark's interval text."""
    return f"{round(parse_duration_s(duration) * 1e6)} microseconds"


def _schema_text(frame: DataFrame) -> str:
    fields = (f for f in frame.schema.fields if f.name != ARRIVAL)
    return ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

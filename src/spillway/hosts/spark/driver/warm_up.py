"""Warms a flow's queries up before the first tuple counts.

A cold JVM takes seconds for a batch that takes a tenth of a second later: it compiles the plan's
code, then compiles what it runs often. So each query's own plan runs for a while over made-up rows
of its streams' own columns. Nothing of it counts: no sink, no ledger, no decision in the journal,
and a checkpoint that is thrown away. Only a first start is warmed up: at a later one tuples wait.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spillway.errors import SpillwayError
from spillway.gate.combination import Combination
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.states import STARTING, WARMING_UP
from spillway.hosts.spark.driver.supervision import cause_of
from spillway.hosts.spark.worker.rows import OURS
from spillway.logs import catalog
from spillway.options import lowered

MOST_ROWS = 20_000  # of a batch
_ALONE_PER_S, _JOINED_PER_S = 20_000, 500  # made-up rows of other logs: a join multiplies them
_SETTLED = 0.9  # the last batches took at least so much of what those before them took
_BATCHES = 3
_LOOK_S = 0.2
_REMOVE_S = 10.0
_KEPT = (  # of the gate's options: those that the plan depends on
    *("delay", "class", "parallelism", "heartbeat", "quiet", "schema"),
    *("arrival", "weight", "place", "kept_from", "masks", "split", "instances"),
)


def warm_up(application: Application) -> None:
    """Until batches get no faster, or for as long as the flow says."""
    most_s = application.flow.control.warm_up_s
    if most_s > 0.0:
        _WarmUp(application, most_s).run()


class _WarmUp:
    def __init__(self, application: Application, most_s: float) -> None:
        self._application = application
        self._folder = application.folder.root / "warm-up"
        self._begun_s = time.monotonic()
        self._ends_s = self._begun_s + most_s
        self._running: dict[str, StreamingQuery] = {}
        self._skipped: dict[str, str] = {}

    def run(self) -> None:
        phases = self._application.states.phases
        shutil.rmtree(self._folder, ignore_errors=True)  # a kill may have left it
        try:
            for name in self._application.flow.queries:
                phases[name] = WARMING_UP
                self._begin(name)
            while not self._is_over() and not all(map(_is_settled, self._running.values())):
                time.sleep(_LOOK_S)
        finally:
            batches = {name: len(_durations_s(query)) for name, query in self._running.items()}
            for query in self._running.values():
                query.stop()
            _remove(self._folder)
            phases |= dict.fromkeys(phases, STARTING)
        self._application.event(
            "warmed up",
            seconds=round(time.monotonic() - self._begun_s, 1),
            batches=batches,
            skipped=self._skipped,
        )

    def _begin(self, name: str) -> None:
        """Start one and wait for its first batch: the next one's planner needs the machine too."""
        if self._application.folder.checkpoint(name).exists():
            self._skipped[name] = "goes on from its checkpoint: what waits there warms it up"
            return
        if self._is_over():
            self._skipped[name] = "no time was left"
            return
        try:
            query = self._running[name] = self._started(name)
            while query.isActive and not _durations_s(query) and not self._is_over():
                time.sleep(_LOOK_S)
        except (SpillwayError, PySparkException) as error:
            self._skipped[name] = cause_of(str(error))
            return
        if (failed := query.exception()) is not None:
            self._skipped[name] = cause_of(str(failed))

    def _is_over(self) -> bool:
        return time.monotonic() > self._ends_s

    def _started(self, name: str) -> StreamingQuery:
        given, spark = self._application.flow.queries[name], self._application.spark
        frame = self._application.answers.frame(name, self._read)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", given.class_name)
        writer = frame.writeStream.outputMode(given.mode).format("noop")
        return writer.option("checkpointLocation", str(self._folder / name)).start()

    def _read(self, name: str, stream: str, combination: Combination | None) -> DataFrame:
        """What the query reads, over rows that are made up."""
        application = self._application
        query, declared = application.flow.queries[name], application.flow.streams[stream]
        given = application.gates.options(name, query, stream)
        own = {key: value for key, value in lowered(given).items() if key in _KEPT}
        own.setdefault("parallelism", str(application.gates.tasks_of_a_batch()))
        own |= {} if combination is None else {"combine": combination.text()}
        joined = len(application.streams_of(name)) > 1
        if declared.source in catalog.STARTED:
            names = {option.name.lower() for option in catalog.options_of(declared.source)}
            rows = {key: value for key, value in lowered(given).items() if key in names}
            rows = {key: value for key, value in rows.items() if key not in ("start", "tuples")}
            rows["source"] = declared.source
        else:
            rate = _JOINED_PER_S if joined else _ALONE_PER_S
            rows = {"source": "synthetic", "rate": str(rate)}
            own["schema"] = _columns(application.gates.read(name, stream))
        own |= {"manager": "none", "max_batch": str(MOST_ROWS), "gate": f"warm-up-{name}/{stream}"}
        own |= {"joint": f"warm-up-{name}"} if joined else {}
        return application.gates.frame(stream, {**own, **rows})


def _remove(folder: Path) -> None:
    """State stores may still write for a moment after their query has stopped."""
    ends_s = time.monotonic() + _REMOVE_S
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < ends_s:
        time.sleep(_LOOK_S)
        shutil.rmtree(folder, ignore_errors=True)


def _columns(frame: DataFrame) -> str:
    """The log's own ones, as DDL."""
    theirs = (field for field in frame.schema.fields if field.name not in OURS)
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in theirs)


def _durations_s(query: StreamingQuery) -> list[float]:
    """Of the batches that had rows."""
    seen: Sequence[Any] = query.recentProgress
    return [p["durationMs"]["triggerExecution"] / 1e3 for p in seen if p["numInputRows"] > 0]


def _is_settled(query: StreamingQuery) -> bool:
    """Batches get no faster, or the query has failed."""
    if not query.isActive:
        return True
    durations_s = _durations_s(query)
    if len(durations_s) < 2 * _BATCHES:
        return False
    last_s, before_s = durations_s[-_BATCHES:], durations_s[-2 * _BATCHES : -_BATCHES]
    return median(last_s) >= _SETTLED * median(before_s)

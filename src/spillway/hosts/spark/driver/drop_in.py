"""Executors of somebody else's job: its gates are told of the cores, its batches of the load."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spillway.clock import WallClock
from spillway.cluster.scaling.usage import Terms
from spillway.flow.scale import Scale
from spillway.hosts.spark.cores import forget_cores, tell_cores
from spillway.hosts.spark.driver.executors import (
    SparkExecutors,
    context_of,
    live_cores,
)
from spillway.hosts.spark.driver.progress import (
    BatchProgress,
    DeliveredBatch,
    ProgressMonitor,
    delivered,
)
from spillway.hosts.spark.driver.scaling import Scaling
from spillway.model import Target

Tell = Callable[[str, Mapping[str, Any]], None]  # what happened, and its figures

_LOOK_S = 1.0


class FollowedCores:
    """Writes down how many cores there are, for the gates of this session, until `stop`."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = context_of(spark)
        jvm: Any = self._context._jvm
        self._jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        self._told = 0
        self._stopping = threading.Event()
        self._tell()  # before the first batch of whatever is started next
        self._thread = threading.Thread(target=self._follow, name="spillway-cores", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        forget_cores(self._jvm_pid)

    def _follow(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            with suppress(Py4JError, ConnectionError):  # the JVM is going
                self._tell()

    def _tell(self) -> None:
        cores = live_cores(self._context)
        if cores != self._told:
            tell_cores(self._jvm_pid, cores)
            self._told = cores


class DropInScaling:
    """Runs until `stop`. Every query with a gate counts, by the run's id where it has no name."""

    def __init__(self, spark: SparkSession, scale: Scale, target: Target, tell: Tell) -> None:
        self._target, self._tell = target, tell
        executors = SparkExecutors(spark)
        self._queries: set[str] = set()
        self._cores = FollowedCores(spark)
        self._scaling = Scaling(
            executors,
            scale,
            self._terms,
            self._note,
            WallClock(),
            shortest_target_s=target.delay_s,
        )
        self._monitor = ProgressMonitor(spark, self._on_progress)
        self._scaling.start()

    @property
    def wanted(self) -> int:
        """Executors asked for."""
        return self._scaling.fleet.wanted

    def stop(self) -> None:
        """The executors that are there stay."""
        self._scaling.stop()
        self._monitor.close()
        self._cores.stop()

    def _on_progress(self, progress: BatchProgress) -> None:
        progress = replace(progress, query=progress.query or progress.run_id)
        found: Sequence[DeliveredBatch] = delivered(progress)
        if found:
            self._queries.add(progress.query)
        self._scaling.batch(progress, found)

    def _terms(self) -> Mapping[str, Terms]:
        given = Terms(class_name="default", priority=1, target=self._target)
        return dict.fromkeys(tuple(self._queries), given)

    def _note(self, event: str, **values: Any) -> None:
        self._tell(event, values)

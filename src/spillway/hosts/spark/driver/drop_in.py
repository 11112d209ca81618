"""Executors of somebody else's job: its gates are told of the cores, its batches of the load."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from spillway.clock import WallClock
from spillway.cluster.scaling.usage import Terms
from spillway.errors import SpillwayError
from spillway.flow.scale import Scale
from spillway.hosts.spark.cores import forget_cores, tell_cores
from spillway.hosts.spark.driver.executors import SparkExecutors, live_cores
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


class DropInScaling:
    """Runs until `stop`. Every query with a gate counts, by the run's id where it has no name."""

    def __init__(self, spark: SparkSession, scale: Scale, target: Target, tell: Tell) -> None:
        self._spark, self._target, self._tell = spark, target, tell
        executors = SparkExecutors(spark)
        self._queries: set[str] = set()
        self._jvm_pid = int(_jvm(spark).java.lang.ProcessHandle.current().pid())
        self._scaling = Scaling(executors, scale, self._terms, self._note, WallClock())
        self._monitor = ProgressMonitor(spark, self._on_progress)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="spillway-cores", daemon=True)
        self._scaling.start()
        self._thread.start()

    @property
    def wanted(self) -> int:
        """Executors asked for."""
        return self._scaling.fleet.wanted

    def stop(self) -> None:
        """The executors that are there stay."""
        self._stopping.set()
        self._thread.join()
        self._scaling.stop()
        self._monitor.close()
        forget_cores(self._jvm_pid)

    def _follow(self) -> None:
        told = 0
        while True:
            cores = live_cores(self._spark.sparkContext)
            if cores != told:
                tell_cores(self._jvm_pid, cores)
                told = cores
            if self._stopping.wait(_LOOK_S):
                return

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


def _jvm(spark: SparkSession) -> Any:
    jvm = spark.sparkContext._jvm
    if jvm is None:
        raise SpillwayError("scale needs a Spark session with a driver of its own: not Connect")
    return jvm

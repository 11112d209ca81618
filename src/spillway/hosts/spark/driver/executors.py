"""Executors of a running application, through the JVM: the `Resizer` of Spark.

One call asks for a total, and is the same on standalone, YARN and Kubernetes. To lower the total
ends nothing, and to end an executor lowers no total where it is told not to. So the total comes
first: a cluster that saw an executor leave under the old one would start another. Executors are
decommissioned: they end when their tasks have, and no batch fails. Where a session was made without
that they are killed, and their tasks run again.
"""

from collections.abc import Collection
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spillway.cluster.scaling.executors import Executor
from spillway.errors import SpillwayError
from spillway.flow.scale import DYNAMIC, require_scalable
from spillway.hosts.spark.session.pools import task_slots

_DECOMMISSION = "spark.decommission.enabled"
_DRIVER = "driver"


class SparkExecutors:
    def __init__(self, spark: SparkSession) -> None:
        context: Any = context_of(spark)
        require_scalable(context.master, context.getConf().get(DYNAMIC, "false"))
        self._context = context
        self._spark = context._jsc.sc()
        self._backend = self._spark.schedulerBackend()
        self._task_s: dict[str, float] = {}  # by executor, also of those that are gone

    def executors(self) -> tuple[Executor, ...]:
        found = []
        for one in _registered(self._context):
            name = one.id()
            self._task_s[name] = max(self._task_s.get(name, 0.0), one.totalDuration() / 1e3)
            found.append(Executor(name=name, cores=one.totalCores()))
        return tuple(sorted(found, key=lambda one: int(one.name)))

    @property
    def task_s(self) -> float:
        """Of all tasks that had ended when it was last looked."""
        return sum(self._task_s.values())

    def resize(self, total: int, leaving: Collection[str]) -> None:
        self._request(total)
        if not leaving:
            return
        if self._context.getConf().get(_DECOMMISSION, "false").lower() == "true":
            for name in leaving:
                self._backend.decommissionExecutor(name, self._goodbye(), False, False)
        else:
            self._kill(leaving)
            self._request(total)  # to end some has lowered it

    def _kill(self, names: Collection[str]) -> None:
        listed: Any = self._context._jvm.java.util.ArrayList()
        for name in names:
            listed.add(name)
        scala: Any = self._context._jvm.scala.jdk.javaapi.CollectionConverters
        self._spark.killExecutors(scala.asScala(listed).toSeq())

    def _request(self, total: int) -> None:
        scala: Any = self._context._jvm.scala
        self._spark.requestTotalExecutors(total, 0, scala.collection.immutable.HashMap())

    def _goodbye(self) -> Any:
        jvm: Any = self._context._jvm
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo
        return info("released by spillway", jvm.scala.Option.empty())


def context_of(spark: SparkSession) -> SparkContext:
    """Of the driver that this process is: a client of Spark Connect has none."""
    try:
        return spark.sparkContext
    except PySparkException as error:
        raise SpillwayError(
            "executors are seen by a session with a driver of its own, and this one is a client of"
            " Spark Connect: start the job with a master"
        ) from error


def live_cores(context: SparkContext) -> int:
    """Those that tasks run on now.

    Spark's own figure is what the user set as spark.default.parallelism, and never below two on a
    cluster; where no executor has come yet there is nothing better.
    """
    if task_slots(context.master or "") is None:
        try:
            cores: int = sum(one.totalCores() for one in _registered(context))
        except Py4JError:  # the JVM is going
            cores = 0
        if cores > 0:
            return cores
    return max(1, context.defaultParallelism)


def _registered(context: Any) -> list[Any]:
    listed = context._jsc.sc().statusStore().executorList(True)
    return [one for one in map(listed.apply, range(listed.size())) if one.id() != _DRIVER]

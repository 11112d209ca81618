"""What a running query costs, stage by stage: task and processor time as Spark's scheduler has it.

A stage is everything between two exchanges. Spark keeps these figures for its own status page,
with or without the page; they are read from there after the batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, kw_only=True, slots=True)
class StageCost:
    """One stage of one batch."""

    stage_id: int
    rows_in: int  # read from sources and from other stages
    rows_out: int  # written for other stages
    task_s: float  # summed over the tasks
    processor_s: float  # of the JVM alone: a Python source works beside it

    @property
    def cost_s(self) -> float | None:
        return self.task_s / self.rows_in if self.rows_in else None


def measure_stages(spark: SparkSession, query: StreamingQuery) -> tuple[StageCost, ...]:
    """Every stage that Spark still remembers of this run of the query, oldest first."""
    tracker = spark.sparkContext.statusTracker()
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    jobs = sorted(tracker.getJobIdsForGroup(str(query.runId)))
    infos = [info for job in jobs if (info := tracker.getJobInfo(job)) is not None]
    stages = sorted({stage for info in infos for stage in info.stageIds})
    return tuple(cost for stage in stages for cost in _completed(store, stage))


def _completed(store: Any, stage_id: int) -> Iterator[StageCost]:
    """Nothing for a stage that was skipped, still runs, or is forgotten by now."""
    found = _attempt(store, stage_id)
    if found is not None and found.status().toString() == "COMPLETE":
        yield StageCost(
            stage_id=stage_id,
            rows_in=found.inputRecords() + found.shuffleReadRecords(),
            rows_out=found.shuffleWriteRecords(),
            task_s=found.executorRunTime() / 1e3,
            processor_s=found.executorCpuTime() / 1e9,
        )


def _attempt(store: Any, stage_id: int) -> Any:
    from py4j.protocol import Py4JJavaError

    try:
        return store.lastStageAttempt(stage_id)
    except Py4JJavaError:  # NoSuchElementException: Spark keeps the last thousand stages
        return None

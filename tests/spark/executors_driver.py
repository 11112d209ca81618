"""An application on a cluster of its own, whose executors come, go, die and are replaced.

`python executors_driver.py FOLDER`; what it saw is the last line, in JSON.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from spillway.api import scale
from spillway.hosts.spark.driver.executors import SparkExecutors, live_cores
from spillway.hosts.spark.session.pools import settings_to_scale
from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.standalone import standalone

PATIENCE_S = 240.0
SETTINGS = {
    **settings_to_scale(1, 2),
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def main(folder: Path) -> None:
    with standalone(2, folder) as address:
        spark = open_session(address, SETTINGS)
        try:
            seen = {"resized": resized(spark), "scaled": scaled(spark, folder / "checkpoint")}
        finally:
            spark.stop()
    print(json.dumps(seen))


def resized(spark: SparkSession) -> list[list[str]]:
    """Names after two were asked for, one was let go, and the other one was killed."""
    executors = SparkExecutors(spark)

    def names() -> list[str]:
        return [one.name for one in executors.executors()]

    executors.resize(2, ())
    until(lambda: len(names()) == 2)
    both = names()
    executors.resize(1, both[:1])
    until(lambda: names() == both[1:])
    time.sleep(3.0)  # a cluster that saw it leave under the old total would have another one here
    one = names()
    _process_of(both[1]).send_signal(signal.SIGKILL)
    until(lambda: len(names()) == 1 and names() != one)
    return [both, one, names()]


def scaled(spark: SparkSession, checkpoint: Path) -> dict[str, Any]:
    """A job of somebody's own, with 1.4 cores of waiting, on one core at first."""
    until(lambda: live_cores(spark.sparkContext) == 1)
    spark.udf.register("waited", arrow_udf(_waited(), "double"))  # type: ignore[call-overload]
    said: list[dict[str, Any]] = []
    scaling = scale(
        spark,
        delay="5s",
        tell=lambda event, values: said.append({"event": event, **values}),
        min=1,
        max=2,
        period="2s",
    )
    gate = spark.readStream.format("spillway").option("source", "synthetic").option("rate", 20_000)
    frame = gate.option("delay", "5s").load().selectExpr("key", "waited(value) AS value")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        until(lambda: live_cores(spark.sparkContext) == 2)
        until(lambda: _tasks(spark) == 2)  # the gate cuts its batches by the cores that there are
        return {"wanted": scaling.wanted, "said": said}
    finally:
        query.stop()
        scaling.stop()


def until(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s, "it has not come to hold"
        time.sleep(0.2)


def _waited() -> Callable[[pa.Array], pa.Array]:
    """Made here, so that executors are sent it and need not have it."""

    def waited(values: pa.Array) -> pa.Array:
        time.sleep(70e-6 * len(values))
        return values

    return waited


def _tasks(spark: SparkSession) -> int:
    """Of the query's last batch."""
    context: Any = spark.sparkContext._jsc
    jobs = context.sc().statusStore().jobsList(None)
    known = map(jobs.apply, range(jobs.size()))
    last: tuple[int, int] = max(((job.jobId(), job.numTasks()) for job in known), default=(0, 0))
    return last[1]


def _process_of(executor: str) -> psutil.Process:
    for process in psutil.Process(os.getpid()).children(recursive=True):
        words: list[str] = []
        with suppress(psutil.Error):  # one that has just ended
            words = process.cmdline()
        if "--executor-id" in words and words[words.index("--executor-id") + 1] == executor:
            return process
    raise AssertionError(f"no process of executor {executor}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

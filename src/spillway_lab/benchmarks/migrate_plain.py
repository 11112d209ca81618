"""Plain Spark: the same query over its rate source, stopped and started on its checkpoint.

    python -m spillway_lab.benchmarks.migrate_plain FOLDER CALM_S

Spark's best case: the session stays, the next query starts in the JVM that ran the last one.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from spillway.hosts.spark.session.session import open_session
from spillway_lab.benchmarks.kept_results import keep
from spillway_lab.benchmarks.migrate_run import BY_WINDOW, RATE

_WARM_S, _AFTER_S = 40.0, 10.0


def main(folder: Path, calm_s: float) -> None:
    spark = open_session("local[1]", {"spark.ui.enabled": "false"}, name="plain restart")
    rates = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()
    rates.withColumnRenamed("timestamp", "event_time").withWatermark(
        "event_time", "1 second"
    ).createOrReplaceTempView("readings")
    sql = f"SELECT unix_micros(window.start) AS start_us, count(*) AS n {BY_WINDOW}"
    frame = spark.sql(sql)

    def start() -> Any:
        writer = frame.writeStream.option("checkpointLocation", str(folder / "plain"))
        return writer.foreachBatch(lambda rows, batch: keep(rows.toArrow(), batch)).start()

    query, marks = start(), []
    for wait_s in (_WARM_S, calm_s):
        time.sleep(wait_s)
        marks.append((time.time(), _cpu_s()))
    query.stop()
    query = start()
    time.sleep(_AFTER_S + calm_s / 2.0)
    marks.append((time.time(), _cpu_s()))
    time.sleep(5.0)  # for the last results that are due
    query.stop()
    spark.stop()
    print(json.dumps(marks))


def _cpu_s() -> float:
    own = psutil.Process()
    used = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(each.user + each.system for each in used)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))

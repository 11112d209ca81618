"""A template on Spark: its instances as one running plan, and what happens when they change."""

import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import bounded, load_streams, rows_of, streamed
from gates import wait_until
from pyspark.sql import SparkSession

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.templates.instance_store import InstanceStore
from spillway.templates.instances import add_instances
from spillway.templates.templates import Template

pytestmark = pytest.mark.spark

WINDOWED = """
    SELECT window(event_time, :size) AS period, count(*) AS n, round(sum(value), 6) AS total
    FROM ticks WHERE key = :key AND value > :low GROUP BY window(event_time, :size)
"""
INSTANCES = [
    {"key": key, "low": low, "size": size}
    for key in range(2)
    for low in (0.0, 0.5)
    for size in ("2 seconds", "3 seconds")
]


def flow_of(template: str, instances: Any) -> Flow:
    return Flow.model_validate(
        {
            "streams": {
                "ticks": {
                    "source": "synthetic",
                    "options": {
                        "rate": 1000,
                        "columns": "key key(5), value double, event_time time",
                    },
                    "event_time": "event_time",
                    "watermark": "1s",
                }
            },
            "classes": {"default": {"delay": "2s", "manager": "none"}},
            "queries": {"q": {"template": template, "instances": instances}},
        }
    )


def test_a_running_template_gives_every_instance_its_own_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = bounded(flow_of(WINDOWED, INSTANCES), {"ticks": 12_000}, first_batch="3000")
    together = rows_of(streamed(spark, flow, "q", tmp_path))
    closed_s = load_streams(spark, flow)["ticks"]
    template = Template.parse("q", WINDOWED)
    alone: Counter[Any] = Counter()
    for number, values in enumerate(INSTANCES, start=1):
        for row in spark.sql(template.instantiated(values)).collect():
            if row["period"]["end"].timestamp() <= closed_s:
                alone[(number, *row)] += 1
    assert together == alone
    assert len({row[0] for row in alone}) == len(INSTANCES)


def test_instances_come_and_go_while_the_others_keep_their_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    template = """
        SELECT window(event_time, '4 seconds') AS period, count(*) AS n
        FROM ticks WHERE key = :key GROUP BY window(event_time, '4 seconds')
    """
    start_s = math.floor(time.time()) + 1
    value = flow_of(template, [{"key": 0}, {"key": 1}]).model_dump(by_alias=True)
    value["streams"]["ticks"]["options"] |= {"start": str(start_s), "startingOffsets": "earliest"}
    value["queries"]["q"] |= {"sink": {"type": "memory"}, "mode": "update"}
    folder = Folder(root=tmp_path)
    application = Application(Flow.model_validate(value), spark, folder)
    application.start()
    try:
        results = spark.table("q")
        wait_until(lambda: results.where("n > 0").count() > 0)
        store = InstanceStore(folder.instances("q"))
        [new] = add_instances(store, "q", [{"key": 2}])
        wait_until(lambda: results.where(f"query_id = {new}").count() > 0)
        store.remove([2])
        gone_s = time.time() + 3.0
        wait_until(lambda: time.time() > gone_s + 5.0)
    finally:
        application.stop()
    latest = results.groupBy("query_id", "period").agg({"n": "max"}).collect()
    ends_s = {
        i: sorted(r["period"]["end"].timestamp() for r in latest if r[0] == i) for i in (1, 2, new)
    }
    counts = {(r[0], r["period"]["start"].timestamp()): r[2] for r in latest}
    assert max(ends_s[2]) < max(ends_s[1]), "a removed instance sees no more tuples"
    bounds = {"ticks": round(1000 * (time.time() - start_s))}
    batch = bounded(application.flow, bounds, start=str(start_s))
    load_streams(spark, batch)
    answer = {
        row["period"]["start"].timestamp(): row["n"]
        for row in spark.sql(Template.parse("q", template).instantiated({"key": 0})).collect()
    }
    whole = [s for (i, s) in counts if i == 1 and s + 4.0 < max(ends_s[1])]
    assert len(whole) >= 2
    assert {s: counts[1, s] for s in whole} == {s: answer[s] for s in whole}

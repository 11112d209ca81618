"""A template on Spark: its instances as one running plan, and what happens when they change."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import bounded, load_streams, rows_of, streamed
from pyspark.sql import SparkSession

from spillway.queries.flow import Flow
from spillway.queries.templates import Template

pytestmark = pytest.mark.spark

WINDOWED = """
    SELECT window(event_time, :size) AS period, count(*) AS n, round(sum(value), 6) AS total
    FROM ticks WHERE key = :key AND value > :low GROUP BY window(event_time, :size)
"""
INSTANCES = [
    {"key": key, "low": low, "size": size}
    for key in range(3)
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

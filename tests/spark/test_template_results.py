"""Results of a template are exactly those of running each instance as its own query."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spillway.queries.instance_store import FOREVER, Instance
from spillway.queries.instances import shapes_of
from spillway.queries.templates import ADDED, QUERY_ID, REMOVED, SHAPE, Template, column_of

TEMPLATES = {
    "filter": "SELECT id, price * :factor AS p FROM ticks WHERE sector = :sector AND price > :low",
    "star": "SELECT * FROM ticks WHERE sector = :sector AND price BETWEEN :low AND :low + 30",
    "windowed": """
        SELECT window(ts, :size) AS w, sector, count(*) AS n, sum(price) AS total
        FROM ticks WHERE price > :low GROUP BY window(ts, :size), sector HAVING count(*) > :least
    """,
    "sliding": """
        SELECT window(ts, :size, '5 seconds') AS w, max(price) AS top
        FROM ticks WHERE sector = :sector GROUP BY window(ts, :size, '5 seconds')
    """,
    "session": """
        SELECT session_window(ts, :size) AS w, sector, count(*) AS n
        FROM ticks WHERE sector = :sector GROUP BY session_window(ts, :size), sector
    """,
    "join": """
        SELECT t.id, o.amount FROM ticks t JOIN orders o ON t.id = o.id AND o.amount > :low
        WHERE t.sector = :sector
    """,
    "left join": """
        SELECT t.id, o.amount FROM ticks t LEFT JOIN orders o ON t.id = o.id AND o.amount > :low
        WHERE t.sector = :sector
    """,
    "nested": """
        SELECT sector, max(total) AS best FROM (
          SELECT sector, id % :factor AS part, sum(price) AS total FROM ticks
          WHERE price > :low GROUP BY sector, id % :factor) AS parts
        WHERE total > :low GROUP BY sector
    """,
    "union in a cte": """
        WITH both AS (SELECT id, price FROM ticks WHERE sector = :sector
                      UNION ALL SELECT id, amount AS price FROM orders WHERE amount > :low)
        SELECT count(*) AS n, sum(price) AS total FROM both WHERE price > :low
    """,
    "two carriers": """
        SELECT a.sector, a.n, b.m FROM
          (SELECT sector, count(*) AS n FROM ticks WHERE price > :low GROUP BY sector) AS a
          JOIN (SELECT sector, count(*) AS m FROM ticks WHERE price <= :low GROUP BY sector) AS b
          ON a.sector = b.sector
    """,
    "distinct": "SELECT DISTINCT sector FROM ticks WHERE price > :low",
}


def random_values(rng: np.random.Generator, parameters: tuple[str, ...]) -> dict[str, Any]:
    choices: dict[str, Any] = {
        "sector": str(rng.choice(["tech", "auto", "none"])),
        "low": float(rng.integers(0, 90)),
        "factor": int(rng.integers(1, 5)),
        "size": str(rng.choice(["10 seconds", "15 seconds", "1 minute"])),
        "least": int(rng.integers(0, 4)),
    }
    return {name: choices[name] for name in parameters}


def make_streams(spark: SparkSession, rng: np.random.Generator) -> None:
    start = datetime(2026, 1, 1)
    ticks = [
        (
            i,
            str(rng.choice(["tech", "auto", "food"])),
            float(rng.integers(0, 100)),
            start + timedelta(seconds=float(rng.uniform(0, 90))),
        )
        for i in range(120)
    ]
    orders = [(int(rng.integers(0, 150)), float(rng.integers(0, 100))) for _ in range(80)]
    spark.createDataFrame(ticks, "id int, sector string, price double, ts timestamp").selectExpr(
        "*", "7L AS _version"
    ).createOrReplaceTempView("ticks")
    spark.createDataFrame(orders, "id int, amount double").selectExpr(
        "*", "7L AS _version"
    ).createOrReplaceTempView("orders")


def instance_table(
    spark: SparkSession, template: Template, instances: list[Instance], name: str
) -> list[dict[str, str]]:
    shapes = shapes_of(template, [instance.values for instance in instances])
    plain = [p for p in template.parameters if p not in template.literal_parameters]
    rows = []
    for instance in instances:
        shape = {p: str(instance.values[p]) for p in template.literal_parameters}
        values = [instance.values[p] for p in plain]
        rows.append(
            (instance.query_id, instance.added, instance.removed, shapes.index(shape), *values)
        )
    columns = [QUERY_ID, ADDED, REMOVED, SHAPE, *(column_of(p) for p in plain)]
    spark.createDataFrame(rows, columns).createOrReplaceTempView(name)
    return shapes


def rows_of(spark: SparkSession, sql: str, drop: tuple[str, ...] = ()) -> Counter[Any]:
    frame = spark.sql(sql)
    hidden = [c for c in frame.columns if c.startswith("_p_") or c == "_version" or c in drop]
    return Counter(tuple(row) for row in frame.drop(*hidden).collect())


@pytest.mark.spark
@pytest.mark.parametrize("name", TEMPLATES)
def test_each_instance_gets_exactly_its_own_results(spark: SparkSession, name: str) -> None:
    rng = np.random.default_rng(len(name))
    make_streams(spark, rng)
    template = Template.parse("q", TEMPLATES[name])
    instances = [
        Instance(query_id=i, values=random_values(rng, template.parameters), added=1)
        for i in range(1, 4)
    ]
    shapes = instance_table(spark, template, instances, "instances_of_q")
    together = rows_of(spark, template.fused("instances_of_q", shapes))
    alone: Counter[Any] = Counter()
    for instance in instances:
        for row, count in rows_of(spark, template.instantiated(instance.values)).items():
            if not (name == "union in a cte" and row[0] == 0):  # no rows: no group, no result
                alone[(instance.query_id, *row)] += count
    assert together == alone
    assert sum(alone.values()) > 0, "the case must have results to compare"


@pytest.mark.spark
def test_a_row_sees_the_instances_of_its_own_version_only(spark: SparkSession) -> None:
    make_streams(spark, np.random.default_rng(1))
    template = Template.parse("q", "SELECT count(*) AS n FROM ticks WHERE price >= :low")
    instances = [
        Instance(query_id=1, values={"low": 0.0}, added=1),
        Instance(query_id=2, values={"low": 0.0}, added=8),
        Instance(query_id=3, values={"low": 0.0}, added=1, removed=7),
        Instance(query_id=4, values={"low": 0.0}, added=7, removed=FOREVER),
    ]
    shapes = instance_table(spark, template, instances, "instances_of_q")
    results = rows_of(spark, template.fused("instances_of_q", shapes))
    assert {row[0] for row in results} == {1, 4}

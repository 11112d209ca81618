"""Results of a template are exactly those of running each instance as its own query."""

import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spillway.templates.instance_store import FOREVER, Instance
from spillway.templates.instances import shapes_of
from spillway.templates.templates import ADDED, QUERY_ID, REMOVED, SHAPE, Template, column_of

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


def random_template(rng: np.random.Generator) -> str:
    """A query put together from parts that every template may have."""

    def some(parts: list[str], least: int = 0) -> list[str]:
        count = int(rng.integers(least, len(parts) + 1))
        return [str(part) for part in rng.choice(parts, count, replace=False)]

    source = str(
        rng.choice(
            [
                "ticks AS t",
                "ticks AS t JOIN orders AS o ON t.id = o.id AND o.amount > :low",
                "ticks AS t LEFT JOIN orders AS o ON t.id = o.id AND o.amount <= :low",
                "(SELECT id, sector, price + :low AS price, ts FROM ticks WHERE id > :low) AS t",
                "(SELECT DISTINCT id, sector, price, ts FROM ticks WHERE id % :factor = 0) AS t",
            ]
        )
    )
    filters = some(["t.sector = :sector", "t.price > :low", "t.id % :factor = 0"], least=1)
    where = f"FROM {source} WHERE {' AND '.join(filters)}"
    if rng.random() < 0.3:
        columns = some(["t.id", "t.price * :factor AS p", "t.sector", ":low AS low"], least=1)
        return f"SELECT {', '.join(columns)} {where}"
    keys = some(["t.sector", "t.id % :factor", "window(t.ts, :size)"], least=1)
    results = some(["count(*)", "sum(t.price)", "max(t.price)", "count(DISTINCT t.id)"], least=1)
    shown = [f"{text} AS c{place}" for place, text in enumerate([*keys, *results])]
    having = "HAVING count(*) > :least" if rng.random() < 0.5 else ""
    return f"SELECT {', '.join(shown)} {where} GROUP BY {', '.join(keys)} {having}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(6))
def test_random_templates_give_each_instance_its_own_results(
    spark: SparkSession, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    make_streams(spark, rng)
    for _ in range(5):  # until one has results to compare
        expected = compare(spark, rng, Template.parse("q", random_template(rng)))
        if expected:
            return
    pytest.fail("five templates in a row gave no rows")


@pytest.mark.spark
@pytest.mark.parametrize("name", TEMPLATES)
def test_each_instance_gets_exactly_its_own_results(spark: SparkSession, name: str) -> None:
    rng = np.random.default_rng(len(name))
    make_streams(spark, rng)
    expected = compare(spark, rng, Template.parse("q", TEMPLATES[name]))
    assert sum(expected.values()) > 0, "the case must have results to compare"


def compare(spark: SparkSession, rng: np.random.Generator, template: Template) -> Counter[Any]:
    instances = [
        Instance(query_id=i, values=random_values(rng, template.parameters), added=1)
        for i in range(1, 4)
    ]
    shapes = instance_table(spark, template, instances, "instances_of_q")
    together = rows_of(spark, template.fused("instances_of_q", shapes))
    alone: Counter[Any] = Counter()
    for instance in instances:
        for row, count in rows_of(spark, template.instantiated(instance.values)).items():
            if not is_of_no_rows(template, row):
                alone[(instance.query_id, *row)] += count
    assert together == alone, template.sql
    return alone


def is_of_no_rows(template: Template, row: Any) -> bool:
    """An aggregate over everything says 0 of no rows; in a fused plan no rows make no group."""
    return "GROUP BY" not in template.sql and "count(*)" in template.sql and row[0] == 0


@pytest.mark.spark
def test_equal_parameters_become_the_keys_of_a_broadcast_hash_join(spark: SparkSession) -> None:
    make_streams(spark, np.random.default_rng(1))
    template = Template.parse("q", "SELECT id FROM ticks WHERE sector = :sector AND price > :low")
    values = {"sector": "tech", "low": 1.0}
    shapes = instance_table(
        spark, template, [Instance(query_id=1, values=values, added=1)], "instances_of_q"
    )
    frame = spark.sql(template.fused("instances_of_q", shapes))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    [join] = re.findall(r"BroadcastHashJoin \[(.*?)\], \[(.*?)\]", plan)
    assert join[0].startswith("sector#")
    assert join[1].startswith("_p_sector#")


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

"""Random queries over tuples, and as they are rewritten over partial rows: the same rows and types.

Both run in Spark, as batches: what a watermark does is in tests/properties and in a flow's test.
"""

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from spillway.flow.combining import combined
from spillway.flow.flow import Flow
from spillway.flow.types import spark_type
from spillway.hosts.spark.worker.partial_rows import Combiner, partial_schema

pytestmark = pytest.mark.spark

TYPES = {
    "at": "timestamp",
    "key": "string",
    "group": "int",
    "x": "double",
    "n": "int",
    "big": "bigint",
    "day": "date",
    "flag": "boolean",
    "_weight": "double",
}
COLUMNS = StructType([StructField(name, spark_type(kind)) for name, kind in TYPES.items()])
FLOW = Flow.model_validate(
    {
        "streams": {
            "bids": {"source": "kafka", "event_time": "at", "columns": {"at": "timestamp"}}
        },
        "classes": {"default": {"delay": "2s"}},
        "queries": {"q": {"sql": "SELECT 1 FROM bids"}},
    }
)
WINDOWS = (
    "window(at, '10 seconds')",
    "window(at, '10 seconds', '4 seconds')",
    "window(at, '7 seconds', '7 seconds', '3 seconds')",
)
AGGREGATES = (
    *("count(*)", "count(x)", "count(key)", "sum(n)", "sum(big)", "avg(n)", "avg(x)", "sum(x)"),
    *("min(x)", "max(x)", "min(key)", "max(key)", "max(at)", "min(day)", "max(flag)", "max(big)"),
    *("sum(_weight)", "sum(n * _weight)", "sum(n) / nullif(count(n), 0)", "max(n) - min(n)"),
)
KEYS = ("key", "`group`", "upper(key)", "`group` % 3", "flag", "day")
WHERE = (
    *("x > 0", "x <= 12.5", "n <> 3", "n BETWEEN -5 AND 5", "key = 'a'", "key < 'c'"),
    *("x IS NOT NULL", "key IS NULL", "big >= -7", "3 < n"),
)
ROWS, QUERIES = 2_000, 24


def tuples(rng: np.random.Generator) -> pa.Table:
    def some(values: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values.tolist()]

    at_us = 1_700_000_000_000_000 + rng.integers(0, 60_000_000, ROWS)
    x = rng.integers(-64, 64, ROWS) / 4.0
    x[-200::40] = math.nan  # elsewhere nothing keeps tuples from becoming few rows
    columns = [
        pa.array(some(at_us), pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        pa.array(some(rng.choice(["a", "b", "cä", ""], ROWS)), pa.string()),
        pa.array(some(rng.integers(0, 5, ROWS)), pa.int32()),
        pa.array(some(x), pa.float64()),
        pa.array(some(rng.integers(-9, 9, ROWS)), pa.int32()),
        pa.array(some(rng.integers(-(1 << 40), 1 << 40, ROWS)), pa.int64()),
        pa.array(some(rng.integers(0, 20_000, ROWS)), pa.int32()).cast(pa.date32()),
        pa.array(some(rng.random(ROWS) < 0.5), pa.bool_()),
        pa.array(2.0 ** rng.integers(0, 3, ROWS), pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=to_arrow_schema(COLUMNS, timezone="UTC"))


def query(rng: random.Random) -> str:
    window = rng.choice(WINDOWS)
    keys = rng.sample(KEYS, rng.randrange(3))
    aggregates = rng.sample(AGGREGATES, rng.randint(1, 6))
    shown = [f"{window}.start AS begins", *(f"{key} AS k{i}" for i, key in enumerate(keys))]
    shown += [f"{aggregate} AS a{i}" for i, aggregate in enumerate(aggregates)]
    where = rng.sample(WHERE, rng.randrange(3))
    text = f"SELECT {', '.join(shown)} FROM bids"
    text += f" WHERE {' AND '.join(where)}" if where else ""
    text += f" GROUP BY {', '.join([window, *keys])}"
    return text + rng.choice(("", "", " HAVING count(*) > 2", " HAVING max(n) IS NOT NULL"))


def in_parts(spark: SparkSession, sql: str, rows: pa.Table, rng: random.Random) -> DataFrame:
    given = combined("q", sql, FLOW, COLUMNS)
    partials = partial_schema(given.combination, heartbeats=False)
    schema, made = to_arrow_schema(partials, timezone="UTC"), []
    cut = sorted(rng.sample(range(1, ROWS), 3))
    for start, stop in zip([0, *cut], [*cut, ROWS], strict=True):  # slices
        batches = rows.slice(start, stop - start).to_batches(max_chunksize=300)
        made += list(Combiner(given.combination, schema).partial_rows(batches))
    table = pa.Table.from_batches(made, schema=schema)
    assert table.num_rows < ROWS
    spark.createDataFrame(table).createOrReplaceTempView("bids")
    return spark.sql(given.sql)


def found(frame: DataFrame) -> tuple[Counter[Any], Any]:
    """Doubles to twelve digits: their sums depend on the order, in Spark as well."""
    rows = Counter(
        tuple(f"{value:.12g}" if isinstance(value, float) else value for value in row)
        for row in frame.collect()
    )
    return rows, [(field.name, field.dataType) for field in frame.schema]


def test_random_queries_have_the_same_answers(spark: SparkSession) -> None:
    rng, groups = random.Random(12), 0
    rows = tuples(np.random.default_rng(12))
    whole = spark.createDataFrame(rows).cache()
    for _ in range(QUERIES):
        sql = query(rng)
        whole.createOrReplaceTempView("bids")
        expected = found(spark.sql(sql))
        assert found(in_parts(spark, sql, rows, rng)) == expected, sql
        groups += sum(expected[0].values())
    assert groups > 10 * QUERIES

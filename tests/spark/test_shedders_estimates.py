"""The SQL of an estimate computes what the formulas say."""

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from spillway.queries.estimates import estimated
from spillway.queries.estimates_numbers import estimates, sums

pytestmark = pytest.mark.spark

SQL = """
SELECT g AS grp, count(*) AS n, sum(x) AS total, avg(x) AS mean, max(x) AS top,
       count_if(x > 2) AS large, count(y) AS known
FROM stream GROUP BY g
"""


def test_sql_and_formulas_agree(spark: SparkSession) -> None:
    rng = np.random.default_rng(4)
    rows, groups = 4000, 9
    group = np.minimum(rng.geometric(0.45, rows) - 1, groups - 1)
    weight = rng.choice([1.5, 2.0, 4.0], rows)
    weight[group == 7] = 1.0
    value = rng.lognormal(0.0, 0.8, rows) - 1.0 * (group == 2) * 5.0
    place = np.sort(rng.choice(9000, rows, replace=False))
    known = np.where(rng.random(rows) < 0.5, value, np.nan)
    frame = pd.DataFrame(
        {"g": group, "x": value, "y": known, "_weight": weight, "_place": place}
    ).assign(y=lambda f: f["y"].astype(object).where(f["y"].notna(), None))
    schema = "g long, x double, y double, _weight double, _place long"
    spark.createDataFrame(frame, schema).createOrReplaceTempView("stream")
    found = spark.sql(estimated("q", SQL)).toPandas().set_index("grp").sort_index()

    z = 1.9599639845400536
    numbers = found.index.to_numpy()
    everything = estimates(sums(group, groups, weight, value, place), z)
    for name, expected in (
        ("n", everything.count),
        ("total", everything.sum),
        ("mean", everything.avg),
    ):
        _agree(found, name, expected, numbers)
    large = value > 2
    part = sums(group[large], groups, weight[large], value[large], place[large])
    _agree(found, "large", estimates(part, z).count, numbers)
    there = ~np.isnan(known)
    part = sums(group[there], groups, weight[there], value[there], place[there])
    _agree(found, "known", estimates(part, z).count, numbers)

    exact = found.loc[7]
    assert exact["n"] == exact["n_low"] == exact["n_high"] == (group == 7).sum()
    assert exact["top"] == exact["top_high"]
    assert np.isnan(found.loc[0, "top_high"])
    kept, offered = np.bincount(group), np.bincount(group, weights=weight)
    assert found["_seen"].to_numpy() == pytest.approx((kept / offered)[numbers])


def _agree(found: pd.DataFrame, name: str, expected: object, numbers: np.ndarray) -> None:
    for column, side in ((name, "estimate"), (f"{name}_low", "low"), (f"{name}_high", "high")):
        ours = getattr(expected, side)[numbers]
        theirs = found[column].astype(float).to_numpy()
        assert theirs == pytest.approx(ours, rel=1e-6, nan_ok=True), column

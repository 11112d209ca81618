"""How many partitions the state of a query has: a setting of the session when its first batch runs.

Its checkpoint keeps that number; later starts on it change nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_SETTING = "spark.sql.shuffle.partitions"


@contextmanager
def partitions_of_state(spark: SparkSession, partitions: int | None) -> Iterator[None]:
    """For the queries that are started meanwhile; None: as the session has it."""
    if partitions is None:
        yield
        return
    before = spark.conf.get(_SETTING)
    spark.conf.set(_SETTING, partitions)
    try:
        yield
    finally:
        spark.conf.set(_SETTING, str(before))

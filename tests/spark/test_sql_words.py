"""The functions that `spillway check` knows are those of this Spark."""

import re

from pyspark.sql import SparkSession

from spillway.check.words import LISTED


def test_every_function_of_spark_is_known_and_no_other(spark: SparkSession) -> None:
    rows = spark.sql("SHOW SYSTEM FUNCTIONS").collect()
    assert {row[0] for row in rows if re.fullmatch(r"\w+", row[0])} == LISTED

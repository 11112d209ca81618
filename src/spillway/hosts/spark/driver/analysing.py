"""What Spark's own analyser says of a flow's queries: their plans are made, and none is started."""

import tempfile
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.driver.supervision import cause_of
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.output import SparkOutput
from spillway.hosts.spark.session.session import open_session


def analysed(flow: Flow) -> list[str]:
    """In a session of its own."""
    with tempfile.TemporaryDirectory(prefix="spillway-check-") as folder:
        output = SparkOutput(Path(folder, "spark.log"))
        spark = open_session("local[1]", name="spillway check", output=output)
        try:
            return analysed_in(spark, flow, Path(folder))
        finally:
            spark.stop()


def analysed_in(spark: SparkSession, flow: Flow, folder: Path) -> list[str]:
    """One line for each query that Spark would refuse."""
    application = Application(flow, spark, Folder(root=folder))
    found = []
    try:
        for name, query in application.flow.queries.items():
            try:
                _require_streamable(spark, application.answers.frame(name), query.mode)
            except (PySparkException, SpillwayError) as error:
                found.append(f"queries.{name}: {cause_of(str(error))}")
            except Exception as error:  # of somebody's own function, or as Java says it
                cause: Any = getattr(error, "java_exception", None)
                said = str(cause.getMessage()) if cause is not None else repr(error)
                found.append(f"queries.{name}: {cause_of(said)}")
    finally:
        application.stop()
    return found


def _require_streamable(spark: SparkSession, frame: DataFrame, mode: str) -> None:
    """The rules that Spark applies when a query starts, such as watermarks in mode append."""
    java: Any = spark._jvm
    plan = frame._jdf.queryExecution().analyzed()
    output_mode = getattr(java.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(plan, output_mode)

"""One Spark session for the whole test run: starting it takes ten seconds."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spillway.hosts.spark.session.session import open_session

sys.path.append(str(Path(__file__).parent))

from tally import TALLY


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("local[2,4]", name="spillway tests")
    yield session
    session.stop()


@pytest.fixture
def spark_with_kafka(spark: SparkSession) -> SparkSession:
    from broker import UnavailableError, spark_source_jars

    try:
        jars = spark_source_jars()
    except UnavailableError as reason:
        pytest.skip(f"Spark's own Kafka source: {reason}")
    for jar in jars:
        spark.sql(f"ADD JAR '{jar}'")
    return spark


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder needs Spark. Long runs are for `make chaos`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
    if "SPILLWAY_KILLS" not in os.environ:
        for item in items:
            if item.get_closest_marker("chaos"):
                item.add_marker(pytest.mark.skip(reason="a long run: make chaos"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY:
        found = ", ".join(f"{number:,} {what}" for what, number in TALLY.items())
        terminalreporter.write_line(f"chaos: {found}, 0 differences where tests passed")


@pytest.fixture(autouse=True)
def _stop_queries(request: pytest.FixtureRequest) -> Iterator[None]:
    """No query outlives its test, whatever happened to it."""
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()

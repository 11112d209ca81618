"""A clock and a log that stand for Spark's surroundings."""

from collections.abc import Iterator

import pytest

from spillway.clock import ManualClock
from spillway.testing import ToyLog, toy_source


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def log() -> Iterator[ToyLog]:
    """The log that every planner of the test opens."""
    made = ToyLog()
    with toy_source(made):
        yield made

"""Fixtures of the gate tests."""

import sys
from pathlib import Path

import pytest

from spillway.clock import ManualClock
from spillway.logs import catalog

sys.path.append(str(Path(__file__).parent))

from toy import ToyLog


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> ToyLog:
    """The log that every planner of the test opens."""
    made = ToyLog()
    monkeypatch.setattr(catalog, "open_log", lambda options, schema=None: made)
    monkeypatch.setattr(catalog, "pinned", lambda options, now_s: dict(options))
    return made

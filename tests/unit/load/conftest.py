"""A measurement with the fields that a test is about; the rest is calm."""

from collections.abc import Callable
from typing import Any

import pytest

from spillway.model import Measurement, Target

Measure = Callable[..., Measurement]


@pytest.fixture
def measure() -> Measure:
    def make(**fields: Any) -> Measurement:
        calm: dict[str, Any] = {
            "time_s": 0.0,
            "period_s": 1.0,
            "target": Target(delay_s=2.0),
            "offered_tuples": 100,
            "admitted_tuples": 100,
            "shed_tuples": 0,
            "completed_tuples": 100,
            "queued_tuples": 0,
            "queued_load_s": 0.0,
            "offered_load": 0.5,
            "admitted_load": 0.5,
            "cost_s": 0.005,
            "delay_s": 0.1,
            "busy_s": 0.5,
        }
        return Measurement(**(calm | fields))

    return make

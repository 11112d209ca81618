"""Measurements for the journal."""

from collections.abc import Callable
from typing import Any

import pytest

from spillway.model import BatchRecord, Measurement, Target

Measure = Callable[..., Measurement]


@pytest.fixture
def measurement() -> Measure:
    def made(time_s: float = 1.0, **changes: Any) -> Measurement:
        batch = BatchRecord(kept_tuples=5, scanned_tuples=9, duration_s=0.5, ended_s=0.9)
        given = {
            "period_s": 1.0,
            "target": Target(delay_s=2.0, statistic="p99"),
            "offered_tuples": 100,
            "admitted_tuples": 60,
            "shed_tuples": 40,
            "completed_tuples": 50,
            "queued_tuples": 10,
            "queued_load_s": 0.1,
            "offered_load": 1.2,
            "admitted_load": 0.7,
            "cost_s": 0.012,
            "delay_s": None,
            "busy_s": 0.6,
            "batches": (batch,),
        }
        return Measurement(time_s=time_s, **{**given, **changes})

    return made

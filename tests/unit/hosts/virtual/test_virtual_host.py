"""The virtual host does what Spark's planner does."""

import numpy as np
import pytest

from spillway.classes.control import ClassTerms
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.model import Target


def overloaded_then_silent(manager: str) -> VirtualHost:
    """Twice what it carries for 40 s, then nothing for 20 s."""
    log = CurveLog(np.array([0.0, 40.0, 60.0, 80.0]), np.array([0.0, 8e5, 8e5, 8.1e5]))
    options = GateOptions.parse({"delay": "2s", "manager": manager})
    query = VirtualQuery(name="q", log=log, options=options, cost=BatchCost(kept_s=1e-4))
    return VirtualHost([query], {"default": ClassTerms(priority=1, target=Target(delay_s=2.0))})


@pytest.mark.parametrize("manager", ["ctrl", "aloma"])
def test_a_law_of_a_period_hears_of_a_silence(manager: str) -> None:
    """It forgets what it knows of the overload, as it does behind Spark."""
    host = overloaded_then_silent(manager)
    host.advance(80.0)
    said = [d.decision.reason for d in host.decided if 42.0 < d.measurement.time_s < 60.5]
    assert any(reason.startswith("idle") for reason in said)

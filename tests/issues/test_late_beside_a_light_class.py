"""Two classes on one core, both far below what they own of it: none may come late."""

import numpy as np

from spillway.classes.control import ClassTerms
from spillway.gate.delays import delay_s
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.model import Target


def test_batches_of_a_light_class_leave_time_for_a_lower_one() -> None:
    """Gold's tuples take a tenth of the core, but its batches come back to back: each pays its
    fixed price, and bronze waited for eight seconds."""
    terms = {
        "gold": ClassTerms(priority=3, target=Target(delay_s=2.0)),
        "bronze": ClassTerms(priority=1, target=Target(delay_s=4.0)),
    }
    rates = {
        "g0": ("gold", 450.0),
        "g1": ("gold", 450.0),
        "b0": ("bronze", 1e3),
        "b1": ("bronze", 1e3),
    }
    queries = [
        VirtualQuery(
            name=name,
            log=CurveLog(np.array([0.0, 120.0]), np.array([0.0, 120.0 * rate])),
            options=GateOptions.parse(
                {"delay": f"{terms[of].target.delay_s}s", "class": of, "query": name}
            ),
            cost=BatchCost(fixed_s=0.07, kept_s=1e-4, noise=0.05),
        )
        for name, (of, rate) in rates.items()
    ]
    host = VirtualHost(queries, terms, seed=1)
    host.advance(120.0)
    for name, (of, _) in rates.items():
        lane, target = host.lanes[name], terms[of].target
        late = [f.part.delays(f.ended_s) for f in lane.finished if f.ended_s > 60.0]
        measured_s = delay_s([d for d in late if d.tuples], target)
        assert lane.at.totals.shed == 0
        assert measured_s is not None
        assert measured_s < 1.1 * target.delay_s, name

"""What the driver may change of a gate while it runs: its law, and the least that it keeps."""

from dataclasses import replace

import numpy as np

from spillway.classes.control import ClassTerms
from spillway.gate.options import GateOptions
from spillway.hosts.virtual.host import VirtualHost, VirtualQuery
from spillway.hosts.virtual.machine import BatchCost
from spillway.hosts.virtual.trace import CurveLog
from spillway.model import LawChoice, Target

TERMS = ClassTerms(priority=1, target=Target(delay_s=2.0))


def overloaded() -> VirtualHost:
    """Twice what it can carry, from second 30 on."""
    log = CurveLog(np.array([0.0, 30.0, 1000.0]), np.array([0.0, 3e6, 3e6 + 970 * 6e5]))
    options = replace(GateOptions.parse({"delay": "2s"}), query="q")
    cost = BatchCost(fixed_s=0.2, kept_s=3e-6, scanned_s=1e-8)
    query = VirtualQuery(name="q", log=log, options=options, cost=cost)
    return VirtualHost([query], {"default": TERMS}, cores=1, seed=3)


def shed_between(host: VirtualHost, begin_s: float, end_s: float) -> tuple[int, int]:
    """(shed, admitted) of the batches that ended then."""
    found = [f for f in host.lanes["q"].finished if begin_s < f.ended_s <= end_s]
    kept = sum(f.batch.kept_tuples() for f in found)
    return sum(f.batch.offered_tuples for f in found) - kept, kept


def test_paused_it_sheds_nothing_and_its_delay_gives_way() -> None:
    host = overloaded()
    host.advance(80.0)
    assert shed_between(host, 60.0, 80.0)[0] > 0
    host.control.change("default", replace(TERMS, min_keep=1.0))
    host.advance(120.0)
    assert shed_between(host, 86.0, 120.0)[0] == 0
    late = [d.measurement.delay_s for d in host.decided if d.measurement.time_s > 110.0]
    assert min(delay_s for delay_s in late if delay_s is not None) > 2.0
    host.control.change("default", TERMS)
    host.advance(180.0)
    assert shed_between(host, 150.0, 180.0)[0] > 0


def test_it_keeps_at_least_what_it_is_told() -> None:
    host = overloaded()
    host.advance(60.0)
    host.control.change("default", replace(TERMS, min_keep=0.8))
    host.advance(120.0)
    shed, kept = shed_between(host, 70.0, 120.0)
    assert kept / (kept + shed) >= 0.799


def test_another_law_decides_from_the_next_turn_on() -> None:
    host = overloaded()
    host.advance(60.0)
    quarter = LawChoice(name="fixed", settings={"keep_fraction": 0.25})
    fixed = replace(TERMS, adapts=False, law=quarter)
    host.control.change("default", fixed)
    host.advance(100.0)
    shed, kept = shed_between(host, 70.0, 100.0)
    assert abs(kept / (kept + shed) - 0.25) < 0.02
    host.control.change("default", TERMS)
    host.advance(160.0)
    shed, kept = shed_between(host, 120.0, 160.0)
    assert kept / (kept + shed) > 0.3

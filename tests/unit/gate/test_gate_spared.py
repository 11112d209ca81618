"""What a gate makes of the driver's word that its class is spared."""

from typing import ClassVar

import numpy as np
import pytest

from spillway.gate.gate import Gate
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.planning import Waiting, survey
from spillway.gate.restraint import HOPELESS_TARGETS
from spillway.gate.rules import Stretch
from spillway.hosts.virtual.trace import TraceLog
from spillway.model import Decision, KeepFraction, Measurement, Order, Report, Target
from spillway.options import Option
from spillway.ports import Cadence

TARGET = Target(delay_s=2.0)
NOW_S = 1_000.0
START = Offset(
    gate="q/s",
    began_us=0,
    seq=0,
    planned_us=0,
    stretches=(Stretch(partition=0, start=0, read=0, stop=0),),
)


class Quarter:
    """A law that answers to the load, as it says, with a quarter."""

    cadence: ClassVar[Cadence] = "batch"
    parameters: ClassVar[tuple[Option, ...]] = ()
    adapts: ClassVar[bool] = True

    def decide(self, measurement: Measurement) -> Decision:
        return Decision(action=KeepFraction(fraction=0.25), reason="too much")


class FixedQuarter(Quarter):
    adapts: ClassVar[bool] = False


def waiting(oldest_s: float) -> Waiting:
    """A thousand tuples, the oldest of this age."""
    log = TraceLog(NOW_S - np.linspace(oldest_s, 0.1, 1_000))
    return survey(START, log.extent(NOW_S), log.arrivals)


def planned(law: Quarter, *, spared: bool, oldest_s: float = 3.0) -> tuple[float, Report]:
    """The share that the next batch keeps, and what the driver is told of it."""
    options = {"delay": "2s", "first_batch": "100000", "backlog": "cut"}
    gate = Gate(GateOptions.parse(options), law)
    gate.resume(START)
    gate.obey(Order(target=TARGET, spared=spared))
    backlog = waiting(oldest_s)
    batch = gate.plan(START, backlog, NOW_S)
    return batch.rule.keep_ppm / 1e6, gate.report(batch, backlog.arrivals, NOW_S)


def test_a_spared_query_keeps_everything_and_the_journal_says_why() -> None:
    kept, report = planned(Quarter(), spared=True)
    assert kept == 1.0
    [decided] = report.decided
    assert decided.decision.action == KeepFraction(fraction=1.0)
    assert decided.decision.reason == "the class's load is within its share"


def test_a_query_that_is_not_spared_does_what_its_law_says() -> None:
    kept, report = planned(Quarter(), spared=False)
    assert kept == pytest.approx(0.25)
    assert report.decided[0].decision.reason == "too much"


def test_a_spared_query_sheds_from_a_backlog_that_is_older_than_any_contention() -> None:
    hopeless_s = HOPELESS_TARGETS * TARGET.delay_s
    assert planned(Quarter(), spared=True, oldest_s=0.9 * hopeless_s)[0] == 1.0
    assert planned(Quarter(), spared=True, oldest_s=1.1 * hopeless_s)[0] == pytest.approx(0.25)


def test_a_fixed_share_is_obeyed_by_a_spared_query_as_well() -> None:
    assert planned(FixedQuarter(), spared=True)[0] == pytest.approx(0.25)


def test_a_query_whose_driver_does_not_answer_goes_on_with_what_it_was_told_last() -> None:
    gate = Gate(GateOptions.parse({"delay": "9s", "first_batch": "100000"}), Quarter())
    gate.resume(START)
    gate.obey(Order(target=TARGET, may_start=False, turn=0.25, spared=True))
    gate.obey(None)
    batch = gate.plan(START, waiting(3.0), NOW_S)
    assert batch.rule.keep_ppm == 1_000_000, "a hiccup of the driver must not cost it tuples"
    [decided] = gate.report(batch, waiting(3.0).arrivals, NOW_S).decided
    assert decided.measurement.target == TARGET, "the target is the last one that it was told"

"""What a gate drops for the sake of nodes behind it, because its driver says so."""

from dataclasses import replace
from typing import ClassVar

import pytest
from test_gate_spared import NOW_S, START, TARGET, FixedQuarter, Quarter, waiting

from spillway.gate.gate import Gate
from spillway.gate.options import GateOptions
from spillway.load.shares import LEAST_KEPT
from spillway.model import Decision, KeepOfBacklog, Measurement, Order
from spillway.ports import Cadence

ORDER = Order(target=TARGET)


class Nothing(Quarter):
    """Keeps all that waits, as a law does that has room."""

    def decide(self, measurement: Measurement) -> Decision:
        everything = KeepOfBacklog(tuples=measurement.backlog.pending_tuples)
        return Decision(action=everything, reason="fits")


class QuarterAPeriod(Quarter):
    cadence: ClassVar[Cadence] = "period"


def kept(law: Quarter, order: Order, **options: str) -> tuple[float, str]:
    gate = Gate(GateOptions.parse({"delay": "2s", "first_batch": "100000", **options}), law)
    gate.resume(START)
    gate.obey(replace(order, most_keep=0.4))
    batch = gate.plan(START, waiting(0.5), NOW_S)
    return batch.rule.keep_ppm / 1e6, batch.rule.reason


def test_a_gate_with_room_drops_what_would_be_dropped_behind_it() -> None:
    share, reason = kept(Nothing(), ORDER)
    assert share == pytest.approx(0.4)
    assert "for the sake of nodes behind" in reason


def test_a_class_that_is_spared_here_still_drops_for_others() -> None:
    assert kept(Nothing(), replace(ORDER, spared=True))[0] == pytest.approx(0.4)


def test_a_law_that_drops_more_by_itself_is_left_alone() -> None:
    share, reason = kept(FixedQuarter(), ORDER)
    assert share == pytest.approx(0.25)
    assert "sake" not in reason


def test_what_the_user_wants_kept_is_kept() -> None:
    assert kept(Nothing(), ORDER, min_keep="0.7")[0] == pytest.approx(0.7)
    assert kept(Nothing(), replace(ORDER, min_keep=0.6))[0] == pytest.approx(0.6)


def test_some_output_remains_so_that_its_cost_is_known() -> None:
    gate = Gate(GateOptions.parse({"delay": "2s", "first_batch": "100000"}), Nothing())
    gate.resume(START)
    gate.obey(replace(ORDER, most_keep=0.0))
    batch = gate.plan(START, waiting(0.5), NOW_S)
    assert batch.rule.keep_ppm / 1e6 == pytest.approx(LEAST_KEPT)


def test_a_gate_whose_driver_is_gone_sheds_for_itself_alone() -> None:
    options = {"delay": "2s", "first_batch": "100000", "channel": "/nowhere"}
    gate = Gate(GateOptions.parse(options), Nothing())
    gate.resume(START)
    gate.obey(replace(ORDER, most_keep=0.4))
    gate.obey(None)
    assert gate.plan(START, waiting(0.5), NOW_S).rule.keep_ppm == 1_000_000


def test_a_law_of_a_period_keeps_the_smaller_share() -> None:
    gate = Gate(GateOptions.parse({"delay": "2s", "first_batch": "100000"}), QuarterAPeriod())
    gate.resume(START)
    gate.obey(replace(ORDER, most_keep=0.4))
    batch = gate.plan(START, waiting(0.5), NOW_S)  # before its first period it keeps everything
    assert batch.rule.keep_ppm / 1e6 == pytest.approx(0.4)

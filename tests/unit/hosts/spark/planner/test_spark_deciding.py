"""What a decision means for the tuples that wait at a gate."""

import numpy as np

from spillway.clock import ManualClock
from spillway.gate.arrivals import Arrivals
from spillway.gate.offsets import Offset
from spillway.gate.options import GateOptions
from spillway.gate.rules import Rule
from spillway.hosts.spark.driver.channel import GateReport
from spillway.hosts.spark.planner.deciding import Choice, Decider
from spillway.model import BatchRecord
from spillway.ports import ArrivalCurve, Span

BEFORE = Offset(
    gate="g",
    began_us=0,
    seq=1,
    planned_us=0,
    stretches=(),
    rule=Rule(seed=0, policy="uniform", reason=""),
    pinned={},
)


def arrived(tuples: int, from_s: float, to_s: float) -> Arrivals:
    curve = ArrivalCurve(positions=np.array([0, tuples]), times_s=np.array([from_s, to_s]))
    return Arrivals.pool([(Span(partition=0, start=0, stop=tuples), curve)])


def of_a_stale_backlog(batch_s: float) -> Choice:
    clock = ManualClock(100.0)
    decider = Decider(GateOptions.parse({"source": "synthetic", "delay": "500ms"}), clock)
    decider.choose(BEFORE, arrived(1000, 99.9, 100.0))
    decider.batch_ended(
        BEFORE,
        BatchRecord(kept_tuples=1000, scanned_tuples=1000, duration_s=batch_s, ended_s=100.0),
    )
    return decider.choose(BEFORE, arrived(264_000, 90.0, 100.0))


def test_of_a_stale_backlog_the_newest_that_meet_the_target_are_kept() -> None:
    choice = of_a_stale_backlog(0.1)
    assert choice.fresh
    assert choice.wish.kept_tuples > 1000


def test_what_a_silent_loop_was_not_told_does_not_pile_up() -> None:
    reports: list[GateReport] = []

    def no_answer(report: GateReport) -> None:
        reports.append(report)

    decider = Decider(GateOptions.parse({"source": "toy"}), ManualClock(100.0), no_answer)
    for number in range(500):
        batch = BatchRecord(kept_tuples=9, scanned_tuples=9, duration_s=1.0, ended_s=float(number))
        decider.batch_ended(BEFORE, batch)
    decider.may_start(BEFORE, arrived(10, 99.0, 100.0), 0.0)
    assert [batch.ended_s for batch in reports[0].batches] == list(map(float, range(400, 500)))

"""When a batch is made half as large as it could be, to compare two sizes."""

from dataclasses import replace

import pytest

from spillway.gate.measuring import Standing
from spillway.gate.options import GateOptions
from spillway.gate.restraint import Restraint
from spillway.model import ADMIT_ALL, Backlog, BatchRecord, Decision, KeepFraction, Target

KEEPS = Decision(action=ADMIT_ALL, reason="all of it")
SHEDS = Decision(action=KeepFraction(fraction=0.5), reason="half of it")
STANDING = Standing(
    now_s=1_000.0,
    target=Target(delay_s=10.0),
    admitted_tuples=0,
    shed_tuples=0,
    backlog=Backlog(pending_tuples=1_000, oldest_age_s=0.5),
)


def restraint(batches: int = 6, took_s: float = 0.3, adapts: bool = True) -> Restraint:
    made = Restraint(GateOptions.parse({"delay": "10s"}), adapts=adapts)
    for number in range(batches):
        made.ended(
            BatchRecord(
                kept_tuples=1_000, scanned_tuples=1_000, duration_s=took_s, ended_s=900.0 + number
            )
        )
    return made


def test_every_sixth_batch_where_there_is_time_and_at_once_not_again() -> None:
    made = restraint()
    assert made.probes(STANDING, KEEPS, most=1_000)
    assert not made.probes(STANDING, KEEPS, most=1_000)
    assert not restraint(batches=5).probes(STANDING, KEEPS, most=1_000)


def test_only_batches_whose_tuples_cost_something() -> None:
    assert restraint().probes(STANDING, KEEPS, most=200)
    assert not restraint().probes(STANDING, KEEPS, most=199)


def test_not_where_something_is_shed_nor_under_a_law_that_does_not_answer_to_the_load() -> None:
    assert not restraint().probes(STANDING, SHEDS, most=1_000)
    assert not restraint(adapts=False).probes(STANDING, KEEPS, most=1_000)
    overloaded = restraint()
    overloaded._evidence.overloaded = True
    assert not overloaded.probes(STANDING, KEEPS, most=1_000)


@pytest.mark.parametrize(
    ("took_s", "age_s", "probes"), [(1.4, 0.5, True), (1.6, 0.5, False), (0.3, 4.5, False)]
)
def test_not_where_it_would_delay_anybody_beyond_half_of_the_target(
    took_s: float, age_s: float, probes: bool
) -> None:
    """The batch itself and the next, of 3 x the last one, on top of the age."""
    now = replace(STANDING, backlog=replace(STANDING.backlog, oldest_age_s=age_s))
    assert restraint(took_s=took_s).probes(now, KEEPS, most=1_000) is probes


def test_every_second_batch_where_all_depends_on_it() -> None:
    old = replace(STANDING, backlog=replace(STANDING.backlog, oldest_age_s=8.0))
    for batches, probes in ((1, False), (2, True)):
        made = restraint(batches=batches)
        assert not made.probes(old, KEEPS, most=1_000)
        made._evidence.doubtful = True
        assert made.probes(old, KEEPS, most=1_000) is probes

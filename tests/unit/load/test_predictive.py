"""Predictive: which planner decides, and what the queue planner observes."""

import pytest

from spillway.load.predictive import Predictive
from spillway.load.queue_planner import QueuePlanner
from spillway.model import Backlog, BatchRecord, KeepFraction, KeepOfBacklog


def test_a_network_gets_a_share_and_a_micro_batch_a_count(measure) -> None:
    assert isinstance(Predictive().decide(measure()).action, KeepFraction)
    batch = BatchRecord(kept_tuples=100, scanned_tuples=100, duration_s=0.5, ended_s=0.0)
    law = Predictive()
    decision = law.decide(measure(batches=(batch,), backlog=Backlog(pending_tuples=10)))
    assert decision.action == KeepOfBacklog(tuples=10)
    assert isinstance(law.decide(measure()).action, KeepOfBacklog)  # also when nothing waits


def test_nothing_is_shed_while_a_batch_runs(measure) -> None:
    waiting = Backlog(pending_tuples=10**6, mean_age_s=9.0, statistic_age_s=9.0)
    decision = Predictive().decide(measure(backlog=waiting, batch_running=True))
    assert decision.action == KeepOfBacklog(tuples=10**6)


def test_the_headroom_is_what_disappeared_while_there_was_a_queue(measure) -> None:
    planner = QueuePlanner(headroom=0.97)
    for k in range(60):  # 0.6 comes in, the queue grows by 0.1: 0.5 is done
        planner.admissible_load(
            measure(admitted_load=0.6, queued_load_s=1.0 + 0.1 * k, delay_s=None)
        )
    assert planner.headroom == pytest.approx(0.5, rel=0.01)


def test_an_idle_plant_says_nothing_about_the_headroom(measure) -> None:
    planner = QueuePlanner(headroom=0.97)
    for _ in range(50):
        planner.admissible_load(measure(admitted_load=0.1, queued_load_s=0.0))
    assert planner.headroom == 0.97


def test_a_delay_that_the_queue_does_not_explain_lowers_the_aim(measure) -> None:
    fair, unfair = QueuePlanner(headroom=1.0), QueuePlanner(headroom=1.0)
    for _ in range(50):
        queue = {"admitted_load": 1.0, "queued_load_s": 1.9, "offered_load": 2.0}
        as_predicted = fair.admissible_load(measure(delay_s=1.9, **queue))
        twice = unfair.admissible_load(measure(delay_s=3.8, **queue))
    assert as_predicted[0] == pytest.approx(0.95 * 2.0 + 1.0 - 1.9, abs=0.05)
    assert twice[0] == pytest.approx(0.95 * 2.0 / 2.0 + 1.0 - 1.9, abs=0.05)

"""AURORA, BASELINE, PID and PIE by hand."""

import pytest

from spillway.load.aurora import Aurora
from spillway.load.baseline import Baseline
from spillway.load.pid import Pid
from spillway.load.pie import Pie
from spillway.model import Backlog, BatchRecord, Prices


def test_aurora_sheds_the_load_above_its_headroom_and_looks_at_nothing_else(measure) -> None:  # type: ignore[no-untyped-def]
    for queued, delay_s in ((0, 0.01), (10**6, 1000.0)):
        measurement = measure(offered_load=1.94, queued_tuples=queued, delay_s=delay_s)
        assert Aurora().decide(measurement).action.fraction == pytest.approx(0.5)


def test_a_quota_of_the_class_scheduler_replaces_the_headroom(measure) -> None:  # type: ignore[no-untyped-def]
    decision = Aurora().decide(measure(offered_load=1.0, headroom=0.25))
    assert (decision.action.fraction, decision.headroom) == (0.25, 0.25)


def test_baseline_fills_the_queue_up_to_the_target_in_one_step(measure) -> None:  # type: ignore[no-untyped-def]
    measurement = measure(cost_s=0.01, queued_tuples=250, offered_tuples=100)
    # (2 s + 1 s) x 100/s - 250
    assert Baseline(headroom=1.0).decide(measurement).action.fraction == pytest.approx(0.5)


def batch(kept: int, duration_s: float) -> tuple[BatchRecord, ...]:
    return (BatchRecord(kept_tuples=kept, scanned_tuples=kept, duration_s=duration_s, ended_s=0.0),)


def test_pid_takes_the_first_rate_and_then_corrects_by_error_and_backlog(measure) -> None:  # type: ignore[no-untyped-def]
    law = Pid()
    backlog = Backlog(pending_tuples=1, oldest_age_s=1.5)
    law.decide(measure(batches=batch(1000, 1.0), offered_tuples=2000, backlog=backlog))
    decision = law.decide(measure(batches=batch(800, 1.0), offered_tuples=2000, backlog=backlog))
    # 1000 - 1 x (1000 - 800) - 0.2 x (0.5 s x 800/s)
    assert decision.action.fraction == pytest.approx(720 / 2000)


def test_pid_never_goes_below_its_floor(measure) -> None:  # type: ignore[no-untyped-def]
    law = Pid(least_rate_per_s=50.0)
    backlog = Backlog(pending_tuples=1, oldest_age_s=100.0)
    for _ in range(5):
        decision = law.decide(
            measure(batches=batch(100, 1.0), offered_tuples=1000, backlog=backlog)
        )
    assert decision.action.fraction == pytest.approx(0.05)


def test_pie_spares_a_burst_then_drops_more_and_more_and_forgets(measure) -> None:  # type: ignore[no-untyped-def]
    law = Pie()
    queued = {"queued_tuples": 1000, "queued_load_s": 6.0, "admitted_load": 1.0}
    kept = [law.decide(measure(**queued)).action.fraction for _ in range(40)]
    assert kept[0] == 1.0
    assert kept[-1] < 0.5
    assert kept == sorted(kept, reverse=True)
    for _ in range(200):
        law.decide(measure(offered_tuples=0))
    assert law.decide(measure()).action.fraction == 1.0


def test_pie_reads_the_delay_of_micro_batches_off_queue_and_headroom(measure) -> None:  # type: ignore[no-untyped-def]
    """What drains is known there: it need not be guessed from how the queue changes."""
    prices = Prices(fixed_s=0.1, kept_s=1e-3)
    told = measure(queued_tuples=9, queued_load_s=1.0, headroom=0.5, prices=prices)
    assert "delay 2 s" in Pie().decide(told).reason
    guessed = measure(queued_tuples=9, queued_load_s=1.0, headroom=0.5)
    assert "delay 1 s" in Pie().decide(guessed).reason

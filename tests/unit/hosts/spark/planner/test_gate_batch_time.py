import os
from pathlib import Path

import pytest

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.options import GateOptions
from spillway.hosts.spark.planner.around import Around, TriggerWatch, committed_s
from spillway.hosts.spark.planner.planner import Planner
from spillway.model import Order, Report, Target
from spillway.testing import ToyLog, ToySpark, toy_planner


def test_an_interval_that_nobody_mentioned_is_said_once_and_ends_nothing() -> None:
    said: list[str] = []
    watch = TriggerWatch(said.append)
    for tick in range(30):
        watch.asked(100.0 + 2.0 * tick + 0.01)
    [line] = said
    assert "options 'trigger'" in line


def test_behind_an_interval_only_a_batch_that_overran_it_shows_its_end() -> None:
    watch = TriggerWatch(lambda said: None)
    assert [watch.asked(100.0 + 2.0 * tick) for tick in range(10)] == [True] * 9 + [False]
    assert not watch.asked(120.01)
    assert watch.asked(123.2)  # at once, after a batch of 3.2 s


def test_behind_an_interval_nothing_is_learned_from_a_batch_that_ended_unseen(
    clock: ManualClock, log: ToyLog, capsys: pytest.CaptureFixture[str]
) -> None:
    spark = ToySpark(toy_planner(clock), clock)
    learned = []
    for _ in range(20):
        spark.batch()
        clock.set((clock.now_s() // 2.0 + 1.0) * 2.0)
        learned.append(spark.logged[-1].get("learned"))
    assert learned[-1] == learned[-5]
    assert capsys.readouterr().err.count("trigger interval") == 1


def test_batches_without_an_interval_raise_no_suspicion() -> None:
    said: list[str] = []
    watch = TriggerWatch(said.append)
    watch.asked(100.3)
    assert all(watch.asked(101.0 + tick) for tick in range(50))
    assert not said


def test_many_batches_within_one_tick_raise_no_suspicion() -> None:
    said: list[str] = []
    watch = TriggerWatch(said.append)
    assert all(watch.asked(100.0 + 0.001 * batch) for batch in range(20))
    assert not said


def test_with_an_interval_the_end_of_a_batch_is_its_commit(
    log: ToyLog, clock: ManualClock, tmp_path: Path
) -> None:
    """Batches of 0.2 s under a trigger of 2 s: learned as 0.2 s, not as 2 s."""
    options = {"trigger": "2s", "checkpoint": str(tmp_path)}
    spark = ToySpark(toy_planner(clock, **options), clock)
    (tmp_path / "commits").mkdir()
    for number in range(20):
        spark.batch()
        commit = tmp_path / "commits" / str(number)
        commit.touch()
        os.utime(commit, (clock.now_s(), clock.now_s()))
        clock.set((clock.now_s() // 2.0 + 1.0) * 2.0)
    costs = spark.logged[-1]["learned"]
    assert costs["o_ps"] / 1e12 + 2000 * costs["c_ps"] / 1e12 == pytest.approx(0.4, rel=0.2)


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
def test_with_an_interval_a_clock_that_is_set_within_a_batch_teaches_nothing(
    log: ToyLog, clock: ManualClock, tmp_path: Path, set_by_s: float
) -> None:
    """A batch of a millisecond, or of an hour, would allow or forbid whatever comes next."""
    options = {"source": "toy", "trigger": "2s", "checkpoint": str(tmp_path)}
    elapsed = ManualClock()
    reports: list[Report] = []

    def ask(report: Report) -> Order:
        reports.append(report)
        return Order(target=Target(delay_s=4.0))

    around = Around(clock=clock, elapsed=elapsed.now_s, sleep=elapsed.advance, ask=ask)
    commit = tmp_path / "commits" / "0"
    commit.parent.mkdir()
    commit.touch()
    planner = Planner(options, GateOptions.parse(options), around=around)
    spark = ToySpark(planner, clock, kept_s=0.0)
    clock.set(1e6)
    log.start_s = clock.now_s() - 1e5
    for number in range(8):
        spark.batch()
        clock.advance(set_by_s if number == 5 else 0.0)
        os.utime(commit, (clock.now_s(), clock.now_s()))
        clock.advance(1.8)
        elapsed.advance(2.0)
    took_s = [batch.record.duration_s for report in reports for batch in report.ended]
    assert took_s.count(0.0) == 1, "of one batch it is not known"
    assert 0.0 < sorted(took_s)[1] <= max(took_s) < 2.0


def test_nothing_is_committed_before_the_first_batch(tmp_path: Path) -> None:
    assert committed_s(tmp_path) is None


def test_an_interval_needs_the_checkpoint() -> None:
    with pytest.raises(SpillwayError, match="needs option 'checkpoint'"):
        GateOptions.parse({"source": "toy", "trigger": "2s"})


def test_the_ledger_goes_into_a_checkpoint_that_is_known() -> None:
    assert GateOptions.parse({"checkpoint": "/c"}).ledger == "/c/spillway/ledger.jsonl"
    assert GateOptions.parse({"checkpoint": "s3://c"}).ledger == "s3://c/spillway/ledger"
    assert GateOptions.parse({}).ledger is None
    assert GateOptions.parse({"checkpoint": "/c", "ledger": "/l"}).ledger == "/l"


def test_a_checkpoint_may_be_a_file_uri_and_with_an_interval_it_must_be_local() -> None:
    for given in ("file:///c", "file:/c", "/c"):
        assert GateOptions.parse({"checkpoint": given, "trigger": "2s"}).checkpoint == "/c"
    with pytest.raises(SpillwayError, match="a folder on the driver's disk"):
        GateOptions.parse({"checkpoint": "s3://bucket/c", "trigger": "2s"})

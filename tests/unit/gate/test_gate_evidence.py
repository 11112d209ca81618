"""What shows that something has to go, and what does not."""

import numpy as np
import pytest

from spillway.clock import ManualClock
from spillway.gate.evidence import Evidence, Room
from spillway.gate.measuring import Standing
from spillway.gate.options import GateOptions
from spillway.gate.plausible import Plausible, Seen
from spillway.hosts.spark.planner.around import Around
from spillway.hosts.spark.planner.planner import Planner
from spillway.model import Backlog, BatchRecord, Order, Prices, Report, Target
from spillway.testing import ToyLog, ToySpark

CHEAP = Prices(fixed_s=0.1, kept_s=1e-6)


def seen(sizes: list[int], fixed_s: float, tuple_s: float, noise: float = 0.0) -> Seen:
    rng, found, now_s = np.random.default_rng(1), Seen(), 0.0
    for kept in sizes:
        factor = float(np.exp(noise * rng.standard_normal()))
        took_s = (fixed_s + tuple_s * kept) * factor
        now_s += took_s
        found.add(
            BatchRecord(kept_tuples=kept, scanned_tuples=kept, duration_s=took_s, ended_s=now_s)
        )
    return found


def test_batches_that_are_alike_leave_open_what_a_tuple_costs() -> None:
    left = Plausible.of(seen([1000] * 30, 0.2, 1e-4))
    assert left.least_tuples_s(1000) == 0.0
    assert left.least_fixed_s < 0.01


def test_batches_of_many_sizes_do_not() -> None:
    sizes = [500, 4000, 1000, 2000, 8000, 700, 3000, 5000] * 5
    left = Plausible.of(seen(sizes, 0.2, 1e-4, noise=0.03))
    assert left.least_s(20_000) == pytest.approx(2.2, rel=0.25)
    assert left.least_tuples_s(20_000) == pytest.approx(2.0, rel=0.25)
    assert left.most_per_s(1.2) == pytest.approx(1e4 / 1.2, rel=0.35)


def test_all_of_the_last_batches_are_kept_in_mind_and_one_in_two_seconds_before() -> None:
    found = Seen()
    for number in range(400):
        ended_s = 1_000.0 + 0.5 * number
        found.add(BatchRecord(kept_tuples=1, scanned_tuples=1, duration_s=0.4, ended_s=ended_s))
    ends = np.array([batch.ended_s for batch in found.all()])
    steps = np.diff(ends)
    assert (steps[-17:] == 0.5).all(), "eighteen in a row"
    assert steps[:19] == pytest.approx(np.full(19, 2.0)), "twenty before"
    assert len(ends) == 38
    assert found.lasts_s == pytest.approx(199.5)
    found.add(BatchRecord(kept_tuples=1, scanned_tuples=1, duration_s=0.4, ended_s=500.0))
    assert (len(found.all()), found.lasts_s) == (1, 0.0), "the clock was set back"


def test_a_pause_is_no_price() -> None:
    found = seen([1000, 2000] * 15, 0.2, 1e-5)
    last = found.last
    found.add(
        BatchRecord(
            kept_tuples=1000, scanned_tuples=1000, duration_s=30.0, ended_s=last.ended_s + 30.0
        )
    )
    assert Plausible.of(found).least_s(1000) < 0.3


def batches_below_capacity(log: ToyLog, clock: ManualClock) -> int:
    """Shed tuples at a fifth of what can be carried, a cold and slow first minute included."""
    log.rate_per_s = 2_000.0
    spark = ToySpark.over(log, clock, delay="2s")
    for number in range(80):
        spark.fixed_s, spark.kept_s = 0.2 + 4.0 / (1 + number), 1e-4 * (1.0 + 8.0 / (1 + number))
        spark.batch()
    return spark.batches(1)[-1].totals.shed


def test_below_capacity_nothing_goes(log: ToyLog, clock: ManualClock) -> None:
    assert batches_below_capacity(log, clock) == 0


def test_a_gate_that_believes_anything_sheds_there(
    log: ToyLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sabotage: without the evidence this load loses tuples, so the test above can fail."""

    def believe(self: Evidence, *now: object) -> None:
        self.overloaded = True

    monkeypatch.setattr(Evidence, "look", believe)
    assert batches_below_capacity(log, clock) > 0


def test_a_gate_that_believes_nothing_never_sheds_in_overload(
    log: ToyLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.rate_per_s = 30_000.0
    assert ToySpark.over(log, clock, delay="2s").batches(60)[-1].totals.shed > 0
    monkeypatch.setattr(Evidence, "look", lambda self, *now: None)
    assert ToySpark.over(log, clock, delay="2s").batches(60)[-1].totals.shed == 0


@pytest.mark.parametrize("rate_per_s", [2_000.0, 30_000.0])
def test_the_driver_is_told_whether_something_has_to_go(
    log: ToyLog, clock: ManualClock, rate_per_s: float
) -> None:
    """30,000 a second are three times what it carries."""
    log.rate_per_s = rate_per_s
    told: list[bool] = []

    def ask(report: Report) -> Order:
        told.append(report.overloaded)
        return Order(target=report_target)

    report_target = Target(delay_s=2.0)
    given = {"source": "toy", "delay": "2s"}
    around = Around(clock=clock, elapsed=clock.now_s, sleep=clock.advance, ask=ask)
    ToySpark(Planner(given, GateOptions.parse(given), around=around), clock).batches(40)
    assert told[-1] is (rate_per_s > 10_000.0)


def test_batches_that_take_many_intervals_show_an_overload_too() -> None:
    """As after a kill: the next batch takes what waits, and is as long as that."""
    evidence, room, now_s = Evidence(), Room(interval_s=4 / 3, length_s=4 / 3), 0.0
    for number in range(12):
        kept = (40_000, 20_000)[number % 2]
        now_s += 0.2 + 5e-4 * kept
        record = BatchRecord(
            kept_tuples=kept, scanned_tuples=kept, duration_s=0.2 + 5e-4 * kept, ended_s=now_s
        )
        evidence.ended(record)
        standing = Standing(
            now_s=now_s,
            target=Target(delay_s=2.0),
            admitted_tuples=round(6_000 * now_s),
            shed_tuples=0,
            backlog=Backlog(),
        )
        evidence.look(standing, room, Prices(fixed_s=0.2, kept_s=5e-4), behind_since_s=0.0)
    assert evidence.overloaded


def test_what_slow_batches_could_carry_is_not_held_against_a_later_backlog() -> None:
    evidence, room, now_s, offered = Evidence(), Room(interval_s=4 / 3, length_s=4 / 3), 0.0, 0

    def batch(kept: int, duration_s: float) -> None:
        nonlocal now_s, offered
        now_s, offered = now_s + duration_s, offered + round(2_000 * duration_s)
        record = BatchRecord(
            kept_tuples=kept, scanned_tuples=kept, duration_s=duration_s, ended_s=now_s
        )
        evidence.ended(record)
        standing = Standing(
            now_s=now_s,
            target=Target(delay_s=2.0),
            admitted_tuples=offered,
            shed_tuples=0,
            backlog=Backlog(),
        )
        evidence.look(standing, room, CHEAP)

    for number in range(40):
        kept = (2_000, 4_000, 3_000)[number % 3]
        batch(kept, 0.9 + 1e-4 * kept)
    assert evidence.most_per_s < 20_000.0, "as far as noise and drift leave it open"
    batch(200, 0.1)
    assert evidence.most_per_s == np.inf

"""What waits because batches were small after a start: a law that sheds need not work it off."""

from spillway.clock import ManualClock
from spillway.gate.ledger import audit
from spillway.gate.offsets import decode
from spillway.testing import ToyLog, ToySpark, toy_planner

CAPACITY_PER_S = 8_500.0  # of a toy batch as long as two thirds of the target
CUT = "stale backlog of the start"


def overloaded(log: ToyLog, clock: ManualClock, **options: str) -> ToySpark:
    """A start at three times the capacity with batches that grow from 50 tuples."""
    log.rate_per_s = 3.0 * CAPACITY_PER_S
    planner = toy_planner(clock, delay="2s", first_batch="50", **options)
    return ToySpark(planner=planner, clock=clock)


def test_the_backlog_of_the_start_is_cut_once_the_law_sheds(
    clock: ManualClock, log: ToyLog
) -> None:
    spark = overloaded(log, clock, manager="aloma")
    delays_s, reasons = [], []
    for _ in range(40):
        batch = spark.batch()
        assert batch is not None
        reasons.append(batch.rule.reason)
        if batch.arrived is not None:
            delays_s.append(clock.now_s() - batch.arrived.mean_us / 1e6)
    cuts = [i for i, reason in enumerate(reasons) if CUT in reason]
    assert cuts
    assert delays_s[cuts[0] - 2] > 2.0  # batch 0 holds no tuples
    assert delays_s[cuts[0] - 1] < 2.0
    assert audit([decode(value) for value in spark.logged]).exact


def test_a_fixed_share_is_never_cut(clock: ManualClock, log: ToyLog) -> None:
    spark = overloaded(log, clock, manager="fixed", **{"manager.keep_fraction": "0.4"})
    batches = spark.batches(40)[1:]
    assert all(batch.rule.keep_ppm == 400_000 for batch in batches)
    assert all(batch.scanned_tuples == batch.offered_tuples for batch in batches)


def test_least_kept_share_is_not_broken_for_it(clock: ManualClock, log: ToyLog) -> None:
    spark = overloaded(log, clock, manager="aloma", min_keep="0.2")
    assert all(batch.rule.keep_ppm >= 200_000 for batch in spark.batches(40)[1:])

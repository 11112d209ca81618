"""`max_shed`: beyond it the delay gives way instead of the data."""

import pytest

from spillway.clock import ManualClock
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset
from spillway.gate.shed_limit import ShedLimit
from spillway.testing import ToyLog, ToySpark


def overloaded(log: ToyLog, clock: ManualClock, **options: str) -> list[Offset]:
    """Ninety seconds and more at three times what can be carried."""
    log.rate_per_s = 30_000.0
    spark = ToySpark.over(log, clock, delay="2s", **options)
    return spark.batches(70)


def shed_share(batches: list[Offset], since: int) -> float:
    totals, before = batches[-1].totals, batches[since].totals
    taken = totals.admitted + totals.shed - before.admitted - before.shed
    return (totals.shed - before.shed) / taken


def test_a_limit_is_a_share_per_time() -> None:
    limit = ShedLimit.parse(" 20% per 10m ")
    assert (limit.share, limit.per_s, limit.text) == (0.2, 600.0, "20% per 10m")


@pytest.mark.parametrize("text", ["20%", "20 per 10m", "120% per 10m", "-1% per 1m", "5% per soon"])
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(SpillwayError) as refused:
        ShedLimit.parse(text)
    assert "\n" not in str(refused.value)


def test_no_more_goes_than_the_limit_says(log: ToyLog, clock: ManualClock) -> None:
    batches = overloaded(log, clock, max_shed="20% per 1m")
    totals = batches[-1].totals
    assert 0 < totals.shed <= 0.2 * totals.offered
    assert any("the delay gives way" in batch.rule.reason for batch in batches)


def test_without_it_the_target_holds_and_most_goes(log: ToyLog, clock: ManualClock) -> None:
    assert shed_share(overloaded(log, clock), since=35) > 0.5


def test_zero_per_cent_lets_nothing_go(log: ToyLog, clock: ManualClock) -> None:
    assert overloaded(log, clock, max_shed="0% per 1m")[-1].totals.shed == 0

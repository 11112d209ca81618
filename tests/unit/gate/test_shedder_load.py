"""Semantic shedding changes what a kept tuple costs; the delay target holds all the same."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from spillway.clock import ManualClock
from spillway.gate.ledger import audit
from spillway.gate.offsets import Offset, decode
from spillway.gate.shedders.blocks import kept_positions
from spillway.testing import ToyLog, ToySpark, toy_planner

Positions = npt.NDArray[np.int64]


class Selective(ToySpark):
    """Every fourth tuple passes the query's filter and costs nine times as much as the others."""

    log: ToyLog

    def batch(self) -> Offset | None:
        before_s = self.clock.now_s()
        batch = super().batch()
        if batch is None:
            return None
        costly = sum(int((p % 4 == 0).sum()) for p in kept(batch, self.log))
        self.clock.advance(8 * self.kept_s * costly)
        assert self.clock.now_s() >= before_s
        return batch


def kept(batch: Offset, log: ToyLog) -> list[Positions]:
    return [kept_positions(s, batch.rule, log) for s in batch.stretches]


@pytest.fixture
def started(clock: ManualClock, log: ToyLog) -> Callable[..., Selective]:
    log.rate_per_s = 50_000.0

    def start(**options: str) -> Selective:
        planner = toy_planner(clock, delay="2s", **options)
        spark = Selective(planner=planner, clock=clock)
        spark.log = log
        return spark

    return start


@pytest.mark.parametrize(
    "options",
    [
        {"shedder": "uniform"},
        {"shedder": "utility", "utility": "IF(position % 4 = 0, 1, 0)"},
        {"shedder": "utility", "utility": "IF(position % 4 = 0, 0, 1)"},
        {"shedder": "key", "key": "position"},
    ],
    ids=["uniform", "keeps the costly", "keeps the cheap", "key"],
)
def test_the_target_holds_whatever_the_kept_tuples_cost(
    started: Callable[..., Selective], options: dict[str, str]
) -> None:
    spark = started(**options)
    delays_s = []
    for number in range(80):
        batch = spark.batch()
        assert batch is not None
        if number >= 50:
            assert batch.arrived is not None
            delays_s.append(spark.clock.now_s() - batch.arrived.mean_us / 1e6)
    assert 1.8 < np.mean(delays_s) < 2.1  # costs that depend on the share are learned slowly
    assert audit([decode(value) for value in spark.logged]).exact


def test_utility_keeps_fewer_of_the_costly_tuples_for_the_same_load(
    started: Callable[..., Selective],
) -> None:
    spark = started(shedder="utility", utility="IF(position % 4 = 0, 1, 0)")
    spark.batches(40)
    last = decode(spark.logged[-1])
    [positions] = kept(last, spark.log)
    assert (positions % 4 == 0).mean() > 0.99
    assert last.rule.keep_ppm < 60_000  # the target allows 3.3 % at nine times the cost

"""The judge of the laws in flows: by what a law did, not by how fast the machine was."""

import numpy as np
import pytest

from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.load import oracle
from spillway.model import DELAY_SHARES, Prices, Target
from spillway_lab.benchmarks.laws_judged import Load, Outcome, judged, outcome

PRICES = Prices(fixed_s=0.3, kept_s=3e-7, scanned_s=1e-8)
TARGET = Target(delay_s=2.0)
LOAD = Load(target=TARGET, rate_per_s=8e6, prices=PRICES)
LENGTH_S = oracle.uniform_length_s(TARGET)


def run(*, slower: float = 1.0, kept: float = 1.0, idle_s: float = 0.0) -> Outcome:
    """Batches as the oracle makes them, on a machine so many times slower, with a part of what it
    keeps, and a time in which nothing runs after each."""
    prices, batches, now_s = PRICES.slower(slower), [], 0.0
    for number in range(60):
        interval_s = LENGTH_S + idle_s
        scanned = round(LOAD.rate_per_s * interval_s)
        room_s = LENGTH_S - prices.fixed_s - prices.scanned_s * scanned
        tuples = round(kept * room_s / prices.kept_s)
        took_s = prices.duration_s(tuples, scanned)
        now_s += interval_s
        batches.append(
            DeliveredBatch(
                gate="q/s",
                seq=number,
                ended_s=now_s,
                duration_s=took_s,
                offered_tuples=scanned,
                kept_tuples=tuples,
                planned_s=now_s - took_s,
                mean_delay_s=2.0,
                quantile_delays_s=np.full(len(DELAY_SHARES), 2.0),
            )
        )
    return outcome(batches, 0.0, 20.0, LOAD)


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_the_speed_of_the_machine_is_no_law_s_doing(slower: float) -> None:
    found = run(slower=slower)
    assert found.efficiency == pytest.approx(1.0, abs=0.02)
    assert found.pace == pytest.approx(slower, rel=0.01)


def test_the_calibrated_figure_is_told_beside_it() -> None:
    assert run(slower=1.5).efficiency_as_calibrated < 0.7


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_law_that_sheds_too_much_or_idles_shows(slower: float) -> None:
    assert run(slower=slower, kept=0.6).efficiency < 0.65
    assert run(slower=slower, idle_s=0.5).efficiency < 0.8


def test_nothing_delivered_never_holds() -> None:
    found = outcome([], 0.0, 20.0, LOAD)
    assert not judged({"q": found})["holds"]

"""How the benchmarks on Spark judge what they measured; no Spark here."""

import numpy as np
import pytest

from spillway.hosts.spark.driver.progress import DeliveredBatch
from spillway.model import Target
from spillway_lab.benchmarks.calibration import Calibration, efficiency
from spillway_lab.benchmarks.gate_overhead import _missed as overhead_missed
from spillway_lab.benchmarks.overload_run import Sample, row_of, settle_s
from spillway_lab.benchmarks.spark_overload import _missed
from spillway_lab.benchmarks.spark_step import PHASE_S, _settled_after_s

TARGET = Target(delay_s=2.0)
MACHINE = Calibration(fixed_s=0.1, kept_s=1e-6, scanned_s=1e-8)
RATE_PER_S = 5e6


def batch(*, ended_s: float, delay_s: float, kept: int = 1000) -> DeliveredBatch:
    return DeliveredBatch(
        gate="g",
        seq=1,
        ended_s=ended_s,
        duration_s=1.0,
        offered_tuples=2 * kept,
        kept_tuples=kept,
        mean_delay_s=delay_s,
        quantile_delays_s=delay_s + np.array([0.5, 0.49, 0.45, -0.5]),
    )


def sample(share_of_best: float, length_s: float = 20.0) -> Sample:
    kept = round(share_of_best * MACHINE.best_kept_per_s(RATE_PER_S, TARGET) * length_s)
    return Sample(batches=[batch(ended_s=1.0, delay_s=2.0, kept=kept)], length_s=length_s)


def test_the_oracle_pays_for_the_fixed_price_and_for_scanning() -> None:
    # 1 - 0.1 s in every 4/3 s - 10 ns for each of 5 million = 0.875 of a second
    assert MACHINE.best_kept_per_s(RATE_PER_S, TARGET) == pytest.approx(875_000.0)


def test_another_fixed_price_leaves_the_time_of_a_batch_as_it_was() -> None:
    other = MACHINE.with_fixed(0.15, 1_000_000)
    assert other.fixed_s == 0.15
    assert other.batch_s(1e6, 1e6) == pytest.approx(MACHINE.batch_s(1e6, 1e6))
    assert other.kept_s < MACHINE.kept_s


def test_efficiency_weighs_every_run_by_its_own_calibrations() -> None:
    slow = Calibration(fixed_s=0.2, kept_s=2e-6, scanned_s=2e-8)
    around = [(MACHINE, MACHINE), (slow, slow)]
    half = Sample(batches=sample(0.45).batches, length_s=20.0)  # of what the fast machine could
    found = efficiency([sample(0.9), half], around, RATE_PER_S, TARGET)
    slow_best = slow.best_kept_per_s(RATE_PER_S, TARGET)
    assert found["efficiency_by_run"][0] == pytest.approx(0.9)
    assert found["efficiency_by_run"][1] == pytest.approx(0.45 * 875_000.0 / slow_best)
    assert len(found["calibrations"]) == 3


@pytest.mark.parametrize(
    ("law", "delay_s", "share", "words"),
    [
        ("predictive", 2.0, 1.0, []),
        ("predictive", 1.7, 1.0, ["mean delay 1.70 s"]),
        ("predictive", 2.2, 1.0, ["mean delay 2.20 s"]),
        ("predictive", 2.0, 0.9, ["efficiency 0.900"]),
        ("predictive", 2.0, 1.4, ["above the bound"]),
        ("aloma", 1.0, 0.6, []),
        ("aloma", 2.5, 1.0, ["mean delay 2.50 s"]),
        ("aurora", 9.0, 0.3, []),
    ],
)
def test_what_was_asked_and_not_reached_is_named(
    law: str, delay_s: float, share: float, words: list[str]
) -> None:
    kept = sample(share).kept_tuples
    seen = Sample(batches=[batch(ended_s=1.0, delay_s=delay_s, kept=kept)], length_s=20.0)
    row = row_of([seen], TARGET) | efficiency([seen], [(MACHINE, MACHINE)], RATE_PER_S, TARGET)
    missed = _missed(law, row, TARGET)
    assert len(missed) == len(words)
    assert all(word in text for word, text in zip(words, missed, strict=True))


def test_a_law_that_delivered_nothing_has_not_held_its_target() -> None:
    nothing = Sample(batches=[], length_s=0.0)
    row = row_of([nothing], TARGET)
    row |= efficiency([nothing], [(MACHINE, MACHINE)], RATE_PER_S, TARGET)
    assert _missed("aloma", row, TARGET) == ["nothing was delivered"]


def phase(*delays_s: float) -> list[DeliveredBatch]:
    """A batch a second from second 100 on."""
    return [batch(ended_s=101.0 + i, delay_s=delay_s) for i, delay_s in enumerate(delays_s)]


def test_settling_is_counted_until_the_delay_stays_at_the_target() -> None:
    calm = [2.0] * int(PHASE_S)
    assert _settled_after_s(phase(*calm), 100.0) == 0.0
    assert _settled_after_s(phase(*calm[:15], 2.6, *calm[16:]), 100.0) == 0.0  # one long batch
    seconds = _settled_after_s(phase(6.0, 5.0, 4.0, 3.0, *calm[4:]), 100.0)
    assert seconds is not None
    assert 4.0 < seconds < 10.0
    assert _settled_after_s(phase(*calm[:-4], 5.0, 5.0, 5.0, 5.0), 100.0) is None
    assert _settled_after_s([], 100.0) is None


def test_an_overhead_above_what_is_asked_is_a_failure() -> None:
    def row(ratio: float) -> dict[str, dict[str, float]]:
        return {"batch_time_ratio": {"ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02}}

    [missed] = overhead_missed({"windowed": row(1.05), "stateless": row(1.03)})
    assert "windowed: batches take 1.050 (1.030 to 1.070)" in missed


def test_an_oracle_that_keeps_nothing_gives_no_efficiency() -> None:
    hopeless = Calibration(fixed_s=3.0, kept_s=1e-6, scanned_s=0.0)
    seen = Sample(batches=[batch(ended_s=1.0, delay_s=2.0)], length_s=1.0)
    found = efficiency([seen], [(hopeless, hopeless)], RATE_PER_S, TARGET)
    assert found["efficiency"] is None
    assert _missed("predictive", row_of([seen], TARGET) | found, TARGET)


def test_laws_of_a_period_are_given_the_time_to_settle() -> None:
    assert settle_s("aloma") > settle_s("predictive")

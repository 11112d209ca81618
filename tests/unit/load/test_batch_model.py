"""Learning o, c and s from finished batches."""

import numpy as np
import pytest

from spillway.load.batch_model import BatchModel
from spillway.model import BatchRecord

OVERHEAD_S, COST_S, SCAN_S = 0.2, 2e-6, 2e-8


def record(kept: int, scanned: int, duration_s: float) -> BatchRecord:
    return BatchRecord(kept_tuples=kept, scanned_tuples=scanned, duration_s=duration_s, ended_s=0.0)


def trained(
    batches: int = 200, noise: float = 0.1, spread: float = 0.6, seed: int = 1
) -> BatchModel:
    rng, model = np.random.default_rng(seed), BatchModel()
    for _ in range(batches):
        kept = int(500_000 * rng.uniform(1.0 - spread, 1.0 + spread))
        scanned = int(kept * rng.uniform(1.0, 4.0))
        exact_s = OVERHEAD_S + COST_S * kept + SCAN_S * scanned
        model.learn(record(kept, scanned, exact_s * float(np.exp(noise * rng.standard_normal()))))
    return model


def test_varied_batches_tell_the_overhead_from_the_cost() -> None:
    model = trained(noise=0.02)
    assert model.overhead_s == pytest.approx(OVERHEAD_S, rel=0.3)
    assert model.cost_s == pytest.approx(COST_S, rel=0.1)
    assert model.noise == pytest.approx(0.02, abs=0.01)


def test_batches_that_are_all_alike_leave_the_first_split_where_it_was() -> None:
    model = BatchModel()
    rng = np.random.default_rng(2)
    for _ in range(2000):
        model.learn(record(500_000, 1_000_000, 1.2 * float(np.exp(0.1 * rng.standard_normal()))))
    assert model.duration_s(500_000, 1_000_000) == pytest.approx(1.2, rel=0.1)
    assert model.overhead_s == pytest.approx(0.9 * 1.2, rel=0.1)
    assert 0.05 < model.cost_s * 500_000 < 0.25
    assert 0.0 <= model.scan_s * 1_000_000 < 0.1


def test_like_batches_do_not_wash_out_what_was_learned_before() -> None:
    model = trained()
    learned = model.overhead_s, model.cost_s
    for _ in range(1000):
        model.learn(record(500_000, 1_000_000, model.duration_s(500_000, 1_000_000)))
    assert (model.overhead_s, model.cost_s) == pytest.approx(learned, rel=0.02)


def test_a_pause_moves_the_prediction_little() -> None:
    model = trained()
    before_s = model.duration_s(500_000, 1_000_000)
    model.learn(record(500_000, 1_000_000, before_s + 5.0))
    assert model.duration_s(500_000, 1_000_000) == pytest.approx(before_s, rel=0.05)


def test_a_lasting_change_is_learned_within_a_few_batches() -> None:
    model = trained(noise=0.02)
    rng = np.random.default_rng(3)
    for _ in range(8):
        kept = int(500_000 * rng.uniform(0.7, 1.3))
        model.learn(record(kept, 2 * kept, OVERHEAD_S + 3 * COST_S * kept))
    expected_s = OVERHEAD_S + 3 * COST_S * 500_000
    assert model.duration_s(500_000, 1_000_000) == pytest.approx(expected_s, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_stay_positive_under_heavy_noise(seed: int) -> None:
    rng, model = np.random.default_rng(seed), BatchModel()
    for _ in range(300):
        kept = int(rng.integers(1, 10**6))
        model.learn(record(kept, kept + int(rng.integers(10**6)), float(rng.pareto(1.5)) + 0.01))
        assert model.overhead_s >= 0.0
        assert model.cost_s > 0.0
        assert model.scan_s >= 0.0
        assert np.isfinite(model.doubt_s(kept, 2 * kept))


def test_a_batch_without_tuples_teaches_nothing() -> None:
    model = BatchModel()
    model.learn(record(0, 0, 0.2))
    assert not model.known


def test_a_wrong_split_of_kept_and_scanned_does_not_outlive_batches_that_tell_them_apart() -> None:
    """A cold start makes scanning look dear; then batches keep different shares, and it is free."""
    model = BatchModel()
    for batch in range(60):  # warming up: dear at first, and it scans more than it keeps
        scanned = 300_000 if batch < 12 else 150_000
        kept = 20_000 if batch < 6 else 100_000 if batch < 12 else scanned
        model.learn(record(kept, scanned, 0.3 + 2.5e-6 * scanned * 0.8**batch))
    for batch in range(12):
        kept = (2, 5, 8, 15)[batch % 4] * 1_000_000
        scanned = (40, 20, 25, 15)[batch % 4] * 1_000_000
        model.learn(record(kept, scanned, 0.27 + 1.5e-7 * kept))
    assert model.cost_s == pytest.approx(1.5e-7, rel=0.1)
    assert model.duration_s(5e6, 40e6) == pytest.approx(0.27 + 0.75, rel=0.1)
    assert model.duration_s(15e6, 15e6) == pytest.approx(0.27 + 2.25, rel=0.1)


def test_a_price_of_scanning_that_is_gone_is_unlearned_as_fast_as_any_other() -> None:
    model = BatchModel()
    for batch in range(75):
        kept = (2, 5, 8, 15)[batch % 4] * 1_000_000
        scanned = (40, 20, 25, 15)[batch % 4] * 1_000_000
        cost_s, scan_s = (1e-8, 1.2e-7) if batch < 60 else (1.5e-7, 0.0)
        model.learn(record(kept, scanned, 0.27 + cost_s * kept + scan_s * scanned))
    assert model.duration_s(2e6, 40e6) == pytest.approx(0.27 + 0.3, rel=0.15)
    assert model.duration_s(15e6, 15e6) == pytest.approx(0.27 + 2.25, rel=0.15)

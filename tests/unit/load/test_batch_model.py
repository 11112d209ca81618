"""Learning o, c and s from finished batches."""

import numpy as np
import pytest

from spillway.load.batch_model import BatchModel
from spillway.model import BatchRecord, Prices

OVERHEAD_S, COST_S, SCAN_S = 0.2, 2e-6, 2e-8


def record(kept: int, scanned: int, duration_s: float) -> BatchRecord:
    return BatchRecord(kept_tuples=kept, scanned_tuples=scanned, duration_s=duration_s, ended_s=0.0)


def prices(model: BatchModel) -> Prices:
    known = model.prices()
    assert known is not None
    return known


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
    assert prices(model).duration_s(500_000, 1_000_000) == pytest.approx(1.2, rel=0.1)
    assert model.overhead_s == pytest.approx(0.9 * 1.2, rel=0.1)
    assert 0.05 < model.cost_s * 500_000 < 0.25
    assert 0.0 <= model.scan_s * 1_000_000 < 0.1


def test_like_batches_do_not_wash_out_what_was_learned_before() -> None:
    model = trained()
    learned = model.overhead_s, model.cost_s
    for _ in range(1000):
        model.learn(record(500_000, 1_000_000, prices(model).duration_s(500_000, 1_000_000)))
    assert (model.overhead_s, model.cost_s) == pytest.approx(learned, rel=0.02)


def test_like_batches_do_not_wash_out_what_scanning_costs_either() -> None:
    rng, model = np.random.default_rng(6), BatchModel()
    for number in range(400):
        kept, scanned = 500_000, 1_000_000
        if number < 200:
            kept = int(rng.uniform(100_000, 900_000))
            scanned = int(kept * rng.uniform(1.0, 4.0))
        took_s = 0.2 + 1e-6 * kept + 5e-7 * scanned
        model.learn(record(kept, scanned, took_s * float(np.exp(0.02 * rng.standard_normal()))))
        if number == 199:
            learned = model.scan_s
    assert learned == pytest.approx(5e-7, rel=0.2)
    assert model.scan_s == pytest.approx(learned, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_steady_stream_does_not_wash_out_what_was_learned_before(seed: int) -> None:
    """A slow moment makes a batch long and the next one large: they go together, for no cause."""
    model, rng = trained(seed=seed), np.random.default_rng(100 + seed)
    learned, length_s = (model.overhead_s, model.cost_s), 0.4
    for _ in range(1000):
        kept = int(200_000 * length_s)
        noise = float(np.exp(0.08 * rng.standard_normal()))
        length_s = (OVERHEAD_S + (COST_S + SCAN_S) * kept) * noise
        model.learn(record(kept, kept, length_s))
    assert model.cost_s < 2.0 * learned[1]
    assert prices(model).duration_s(500_000, 500_000) == pytest.approx(
        OVERHEAD_S + (COST_S + SCAN_S) * 500_000, rel=0.35
    )


def test_a_pause_moves_the_prediction_little() -> None:
    model = trained()
    before_s = prices(model).duration_s(500_000, 1_000_000)
    model.learn(record(500_000, 1_000_000, before_s + 5.0))
    assert prices(model).duration_s(500_000, 1_000_000) == pytest.approx(before_s, rel=0.05)


def test_a_lasting_change_is_learned_within_a_few_batches() -> None:
    model = trained(noise=0.02)
    rng = np.random.default_rng(3)
    for _ in range(8):
        kept = int(500_000 * rng.uniform(0.7, 1.3))
        model.learn(record(kept, 2 * kept, OVERHEAD_S + 3 * COST_S * kept))
    expected_s = OVERHEAD_S + 3 * COST_S * 500_000
    assert prices(model).duration_s(500_000, 1_000_000) == pytest.approx(expected_s, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_stay_positive_under_heavy_noise(seed: int) -> None:
    rng, model = np.random.default_rng(seed), BatchModel()
    for _ in range(300):
        kept = int(rng.integers(1, 10**6))
        model.learn(record(kept, kept + int(rng.integers(10**6)), float(rng.pareto(1.5)) + 0.01))
        assert model.overhead_s >= 0.0
        assert model.cost_s > 0.0
        assert model.scan_s >= 0.0
        assert np.isfinite(prices(model).doubt_s(kept, 2 * kept))


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
    assert prices(model).duration_s(5e6, 40e6) == pytest.approx(0.27 + 0.75, rel=0.1)
    assert prices(model).duration_s(15e6, 15e6) == pytest.approx(0.27 + 2.25, rel=0.1)


def test_a_price_of_scanning_that_is_gone_is_unlearned_as_fast_as_any_other() -> None:
    model = BatchModel()
    for batch in range(75):
        kept = (2, 5, 8, 15)[batch % 4] * 1_000_000
        scanned = (40, 20, 25, 15)[batch % 4] * 1_000_000
        cost_s, scan_s = (7e-8, 6e-8) if batch < 60 else (1.5e-7, 0.0)
        model.learn(record(kept, scanned, 0.27 + cost_s * kept + scan_s * scanned))
    assert prices(model).duration_s(2e6, 40e6) == pytest.approx(0.27 + 0.3, rel=0.15)
    assert prices(model).duration_s(15e6, 15e6) == pytest.approx(0.27 + 2.25, rel=0.15)


@pytest.mark.parametrize("took_s", [1e-5, 1e-3, 1e-2])
def test_a_batch_that_was_timed_wrongly_does_not_take_over(took_s: float) -> None:
    model = trained(noise=0.05)
    before_s = prices(model).duration_s(500_000, 1_000_000)
    model.learn(record(500_000, 1_000_000, took_s))
    assert prices(model).duration_s(500_000, 1_000_000) > 0.7 * before_s


# Kept, scanned (thousands) and milliseconds of the batches of a cold start: what was scanned beyond
# what was kept was scanned while the JVM was slowest.
COLD_START = (
    *((10, 10, 2322), (9, 242, 810), (12, 405, 669), (24, 24, 580), (49, 49, 623), (97, 97, 711)),
    *((195, 195, 767), (390, 810, 787), (393, 393, 720), (360, 360, 656), (328, 328, 640)),
    *((tuples, tuples, ms) for tuples, ms in ((320, 778), (389, 770), (385, 669), (335, 503))),
    *((tuples, tuples, ms) for tuples, ms in ((251, 539), (270, 472), (236, 505), (252, 485))),
    *((tuples, tuples, ms) for tuples, ms in ((243, 455), (228, 483), (242, 488), (244, 417))),
    *((tuples, tuples, ms) for tuples, ms in ((208, 458), (229, 410), (205, 403), (202, 380))),
    *((tuples, tuples, ms) for tuples, ms in ((190, 410), (205, 378), (189, 470), (235, 558))),
    *((tuples, tuples, ms) for tuples, ms in ((208, 409), (205, 352), (176, 360), (180, 370))),
    *((tuples, tuples, ms) for tuples, ms in ((185, 387), (193, 482), (241, 428), (214, 448))),
    *((tuples, tuples, ms) for tuples, ms in ((224, 383), (192, 349), (175, 353), (787, 530))),
)


def test_a_machine_that_warms_up_does_not_make_keeping_look_free() -> None:
    model = BatchModel()
    for kept, scanned, ms in COLD_START:
        model.learn(record(1000 * kept, 1000 * scanned, ms / 1000.0))
        assert model.scan_s <= model.cost_s
    # 787,000 took 0.53 s and 200,000 take 0.38 s
    assert model.cost_s + model.scan_s == pytest.approx(0.26e-6, rel=0.4)
    assert model.cost_s > 0.1e-6
    assert prices(model).cheap_tuples < 300_000


def test_an_old_price_does_not_hold_against_every_batch_since() -> None:
    """Prices that would make a batch of today three times as long as it is."""
    model, rng = BatchModel(), np.random.default_rng(5)
    for tuples in rng.integers(100_000, 1_000_000, 60):
        model.learn(record(int(tuples), 4 * int(tuples), 0.1 + 2e-6 * tuples))
    for _ in range(40):
        noise = float(np.exp(0.05 * rng.standard_normal()))
        model.learn(record(500_000, 30_000_000, 0.4 * noise))
    assert prices(model).duration_s(500_000, 30_000_000) == pytest.approx(0.4, rel=0.1)


def test_cheap_is_a_tenth_of_the_fixed_price() -> None:
    model = BatchModel()
    for batch in range(40):
        tuples = (10_000, 100_000, 500_000)[batch % 3]
        model.learn(record(tuples, tuples, 1.5 + 4e-7 * tuples))
    assert prices(model).cheap_tuples == pytest.approx(0.1 * 1.5 / 4e-7, rel=0.2)


def test_on_other_cores_the_cost_is_another_at_once_and_the_fixed_price_is_not() -> None:
    model = BatchModel()
    for kept in (10_000, 40_000, 20_000, 60_000, 30_000) * 4:
        model.learn(record(kept, kept, 0.5 + 1e-4 * kept))
    fixed_s = model.overhead_s
    model.resized(4.0)
    assert model.overhead_s == pytest.approx(fixed_s)
    assert model.cost_s == pytest.approx(1e-4 / 4.0, rel=0.1)
    for kept in (10_000, 40_000, 20_000):  # what was seen before speaks for the new cores
        model.learn(record(kept, kept, 0.5 + 1e-4 / 4.0 * kept))
    assert model.cost_s == pytest.approx(1e-4 / 4.0, rel=0.1)
    assert model.overhead_s == pytest.approx(0.5, rel=0.1)

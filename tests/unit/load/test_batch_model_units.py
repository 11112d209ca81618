"""What a model has learned does not depend on units, and means the same on other cores."""

import numpy as np
import pytest

from spillway.load.batch_model import BatchModel
from spillway.model import BatchRecord, Prices

FACTOR = 4  # a power of two: nothing is rounded


def history(seed: int) -> list[tuple[int, int, float]]:
    """Kept, scanned and seconds: noise, a pause, a change, batches that shed and that do not."""
    rng, found = np.random.default_rng(seed), []
    for number in range(120):
        kept = int(1e6 * rng.uniform(0.2, 1.8))
        scanned = kept if number < 40 else int(kept * rng.uniform(1.0, 4.0))
        slower = 2.5 if number >= 90 else 1.0
        took_s = slower * (0.3 + 1.5e-6 * kept + 2e-7 * scanned)
        took_s *= float(np.exp(0.08 * rng.standard_normal()))
        found.append((kept, scanned, took_s + (3.0 if number == 60 else 0.0)))
    return found


def trained(
    batches: list[tuple[int, int, float]], tuples: float = 1, seconds: float = 1
) -> BatchModel:
    model = BatchModel()
    for kept, scanned, took_s in batches:
        model.learn(
            BatchRecord(
                kept_tuples=int(tuples * kept),
                scanned_tuples=int(tuples * scanned),
                duration_s=seconds * took_s,
                ended_s=0.0,
            )
        )
    return model


def prices(model: BatchModel) -> Prices:
    known = model.prices()
    assert known is not None
    return known


@pytest.mark.parametrize("length", [1, 2, 5, 39, 62, 89, 92, 95, 120])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_unit_of_time_is_no_matter(seed: int, length: int) -> None:
    batches = history(seed)[:length]
    one, other = prices(trained(batches)), prices(trained(batches, seconds=FACTOR))
    assert (other.fixed_s, other.kept_s, other.scanned_s) == pytest.approx(
        (FACTOR * one.fixed_s, FACTOR * one.kept_s, FACTOR * one.scanned_s), rel=1e-9
    )
    assert (other.pace, other.noise) == pytest.approx((one.pace, one.noise), rel=1e-9)
    for kept, scanned in ((1e5, 1e6), (2e6, 2e6)):
        assert other.doubt_s(kept, scanned) == pytest.approx(FACTOR * one.doubt_s(kept, scanned))


@pytest.mark.parametrize("length", [1, 2, 5, 39, 62, 89, 92, 95, 120])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_called_a_tuple_is_no_matter(seed: int, length: int) -> None:
    batches = history(seed)[:length]
    one, other = prices(trained(batches)), prices(trained(batches, tuples=FACTOR))
    assert (other.fixed_s, FACTOR * other.kept_s, FACTOR * other.scanned_s) == pytest.approx(
        (one.fixed_s, one.kept_s, one.scanned_s), rel=1e-9
    )
    for kept, scanned in ((1e5, 1e6), (2e6, 2e6)):
        assert other.doubt_s(FACTOR * kept, FACTOR * scanned) == pytest.approx(
            one.doubt_s(kept, scanned)
        )


@pytest.mark.parametrize("cores", [0.5, 2.0, 8.0])
def test_on_so_many_times_the_cores_as_many_more_tuples_take_as_long_and_are_as_certain(
    cores: float,
) -> None:
    model = trained(history(1))
    before = prices(model)
    model.resized(cores)
    after = prices(model)
    for kept, scanned in ((0.0, 0.0), (1e5, 1e6), (2e6, 2e6), (5e5, 0.0), (0.0, 3e6)):
        assert after.duration_s(cores * kept, cores * scanned) == pytest.approx(
            before.duration_s(kept, scanned)
        )
        assert after.doubt_s(cores * kept, cores * scanned) == pytest.approx(
            before.doubt_s(kept, scanned)
        )


@pytest.mark.parametrize("cores", [0.5, 2.0, 8.0])
def test_there_and_back_again_nothing_has_been_learned(cores: float) -> None:
    stayed, moved = trained(history(2)), trained(history(2))
    moved.resized(cores)
    moved.resized(1.0 / cores)
    follows = BatchRecord(kept_tuples=700_000, scanned_tuples=900_000, duration_s=1.2, ended_s=0.0)
    for model in (stayed, moved):
        model.learn(follows)
    assert prices(moved).doubts == pytest.approx(prices(stayed).doubts, rel=1e-6)
    assert prices(moved).duration_s(1e6, 2e6) == pytest.approx(
        prices(stayed).duration_s(1e6, 2e6), rel=1e-6
    )


@pytest.mark.parametrize("cores", [0.25, 4.0])
def test_a_batch_that_takes_what_was_expected_on_the_new_cores_teaches_nothing_else(
    cores: float,
) -> None:
    model = trained(history(1)[:90])
    model.resized(cores)
    before = prices(model)
    for kept, scanned in ((600_000, 1_200_000), (1_400_000, 1_500_000)):
        took_s = before.pace * before.duration_s(kept, scanned)
        model.learn(
            BatchRecord(kept_tuples=kept, scanned_tuples=scanned, duration_s=took_s, ended_s=0.0)
        )
    after = prices(model)
    for kept, scanned in ((100_000, 100_000), (1_000_000, 3_000_000)):
        assert after.duration_s(kept, scanned) == pytest.approx(
            before.duration_s(kept, scanned), rel=0.05
        )


def test_doubts_are_as_large_as_errors_are() -> None:
    """Over many histories the error of a prediction, beyond the range seen, is about its doubt."""
    errors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        batches = []
        for _ in range(60):
            kept = int(1e6 * rng.uniform(0.2, 1.8))
            exact_s = 0.3 + 1.5e-6 * kept
            batches.append((kept, kept, exact_s * float(np.exp(0.1 * rng.standard_normal()))))
        known = prices(trained(batches))
        error_s = known.duration_s(4e6, 4e6) - (0.3 + 1.5e-6 * 4e6)
        errors.append(error_s / known.doubt_s(4e6, 4e6))
    assert 0.3 < np.sqrt(np.mean(np.square(errors))) < 2.0

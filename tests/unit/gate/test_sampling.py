import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.gate.sampling import (
    AT_ONCE,
    BLOCK,
    PPM,
    UniformRule,
    count_kept,
    keep_mask,
    keeps,
    kept_positions,
    positions_at_once,
)

positions = st.integers(0, 10**15)
lengths = st.integers(0, 5 * BLOCK)
rules = st.builds(UniformRule, keep_ppm=st.integers(0, 1_000_000), seed=st.integers(0, 2**63))


@given(positions, lengths, rules, st.integers(0, 100))
def test_the_planner_counts_exactly_what_the_workers_keep(
    start: int, length: int, rule: UniformRule, partition: int
) -> None:
    stop = start + length
    mask = keep_mask(start, stop, rule, partition)
    assert len(mask) == length
    assert count_kept(start, stop, rule, partition) == mask.sum()
    assert np.array_equal(
        kept_positions(start, stop, rule, partition), start + np.flatnonzero(mask)
    )


@pytest.mark.parametrize("keep_ppm", [1, 900, 12_345, 100_000, 399_999, 400_001])
def test_long_ranges_are_found_as_by_looking_at_every_position(keep_ppm: int) -> None:
    start, stop = 777, 777 + 600 * BLOCK + 5  # more than two chunks of blocks
    rule = UniformRule(keep_ppm=keep_ppm, seed=3)
    by_mask = start + np.flatnonzero(keep_mask(start, stop, rule, partition=2))
    assert np.array_equal(kept_positions(start, stop, rule, partition=2), by_mask)


@given(positions, lengths, st.integers(0, 5 * BLOCK), rules)
def test_a_range_keeps_the_same_however_it_is_split(
    start: int, length: int, cut: int, rule: UniformRule
) -> None:
    stop, middle = start + length, start + min(cut, length)
    parts = [keep_mask(start, middle, rule), keep_mask(middle, stop, rule)]
    assert np.array_equal(np.concatenate(parts), keep_mask(start, stop, rule))


@given(positions, rules)
def test_one_position_alone_gets_the_same_answer(position: int, rule: UniformRule) -> None:
    assert keeps(position, rule) == keep_mask(position - position % 7, position + 1, rule)[-1]


@pytest.mark.parametrize("keep_ppm", [1_000, 123_456, 500_000, 999_000])
def test_shares_never_drift_from_the_asked_fraction(keep_ppm: int) -> None:
    tuples = 1_000_000 * BLOCK
    assert count_kept(0, tuples, UniformRule(keep_ppm=keep_ppm)) == BLOCK * keep_ppm


@pytest.mark.parametrize("period", [2, 3, 7, 64, 100, 1000])
def test_periodic_data_is_not_favoured(period: int) -> None:
    """A source that interleaves `period` sensors must lose the same share of each."""
    rule = UniformRule(keep_ppm=300_000, seed=11)
    mask = keep_mask(0, 2_000 * period, rule)
    kept_of_sensor = mask.reshape(-1, period).mean(axis=0)
    tolerance = 5 * np.sqrt(0.3 * 0.7 / 2_000)
    assert np.abs(kept_of_sensor - 0.3).max() < tolerance


def test_different_seeds_and_partitions_choose_different_tuples() -> None:
    rule, other = UniformRule(keep_ppm=500_000, seed=1), UniformRule(keep_ppm=500_000, seed=2)
    base = keep_mask(0, 100_000, rule)
    for mask in (keep_mask(0, 100_000, other), keep_mask(0, 100_000, rule, partition=1)):
        assert (base & mask).mean() == pytest.approx(0.25, abs=0.01)


def test_every_slot_of_a_block_is_equally_likely() -> None:
    rule = UniformRule(keep_ppm=250_000, seed=5)
    per_slot = keep_mask(0, 4_000 * BLOCK, rule).reshape(-1, BLOCK).mean(axis=0)
    assert np.abs(per_slot - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 4_000)


def test_neighbouring_tuples_are_kept_nearly_independently() -> None:
    rule = UniformRule(keep_ppm=250_000, seed=3)
    mask = keep_mask(0, 4_000 * BLOCK, rule)
    for lag in (1, 2, 3, 5, 8, 32):
        both = (mask[:-lag] & mask[lag:]).mean()
        assert both == pytest.approx(0.0625, abs=0.004), f"lag {lag}"


@pytest.mark.parametrize("keep_ppm", [0, 1, 10_000, 100_000, 399_999, 400_000, 400_001, PPM])
def test_a_stretch_to_ask_for_is_bounded_in_positions_and_in_what_it_keeps(keep_ppm: int) -> None:
    rule = UniformRule(keep_ppm=keep_ppm)
    length = positions_at_once(rule)
    assert AT_ONCE <= length <= 64 * AT_ONCE
    assert count_kept(0, length, rule) <= AT_ONCE
    if 10_000 <= keep_ppm <= 100_000:
        assert count_kept(0, length, rule) > 200_000

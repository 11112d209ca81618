"""What each shedder promises for itself."""

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest

from spillway.errors import SpillwayError
from spillway.gate.sampling import PPM
from spillway.gate.shedders.expressions import columns_of, evaluate
from spillway.gate.shedders.hashing import key_words
from spillway.gate.shedders.key import Key, fitting_limit_ppm
from spillway.gate.shedders.shedder import Batch
from spillway.gate.shedders.strata import Strata
from spillway.gate.shedders.utility import Utility
from spillway.gate.shedders.windows import REMEMBERED, Held, Windows

RNG = np.random.default_rng(1)


def rows_of(**columns: object) -> pa.Table:
    return pa.table(columns)


def at(seconds: np.ndarray) -> pa.Array:
    return pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))


def test_a_key_is_kept_or_gone_as_a_whole_within_an_epoch() -> None:
    keys = RNG.integers(0, 500, 20_000)
    rows = rows_of(k=keys, t=at(np.full(20_000, 100.0)))
    shedder = Key(column="k", time_column="t", length_us=10_000_000, limit_ppm=400_000)
    mask = shedder.keep(rows, share=0, seed=1, block=0).mask
    assert set(keys[mask]).isdisjoint(keys[~mask])
    assert 0.3 < mask.mean() < 0.5


def test_no_key_starves_because_every_epoch_draws_anew() -> None:
    epochs, keys = 200, 50
    rows = rows_of(k=np.tile(np.arange(keys), epochs), t=at(np.repeat(np.arange(epochs), keys)))
    shedder = Key(column="k", time_column="t", length_us=1_000_000, limit_ppm=300_000)
    mask = shedder.keep(rows, share=0, seed=1, block=0).mask
    share = mask.reshape(epochs, keys).mean(axis=0)
    assert share.min() > 0.15
    assert share.mean() == pytest.approx(0.3, abs=0.02)


def test_both_sides_of_a_join_keep_the_same_keys_whatever_their_integer_type() -> None:
    shedder = Key(column="k", time_column="t", length_us=1_000_000, limit_ppm=500_000)
    keys = np.arange(1000)
    sides = [
        rows_of(k=pa.array(keys, kind), t=at(np.full(1000, 5.5)))
        for kind in (pa.int32(), pa.int64())
    ]
    left, right = (shedder.keep(side, share=0, seed=9, block=0).mask for side in sides)
    assert np.array_equal(left, right)


def test_text_keys_have_fixed_hashes_so_that_another_machine_agrees() -> None:
    first = key_words(pa.array(["a", "b", None, "a"]))
    assert first[0] == first[3] != first[1]
    assert int(first[0]) == int.from_bytes(blake2b(b"a", digest_size=8).digest(), "little")


def test_the_limit_is_the_place_of_the_first_key_that_does_not_fit() -> None:
    places = RNG.integers(0, PPM, 1000).repeat(50)
    for wanted in (-5, 0, 10, 12_345, 49_999):
        limit = fitting_limit_ppm(places, wanted)
        assert max(0, wanted) - 100 < (places < limit).sum() <= max(0, wanted)
        assert (places <= limit).sum() > wanted
    assert fitting_limit_ppm(places, 50_000) == PPM


def test_the_least_useful_tuples_go_first() -> None:
    values = RNG.random(5000)
    kept = Utility(column="v").keep(rows_of(v=values), share=1200, seed=1, block=0)
    assert kept.tuples == 1200
    assert values[kept.mask].min() >= values[~kept.mask].max()


def test_ties_are_broken_by_lot_and_the_share_stays_exact() -> None:
    values = RNG.integers(0, 3, 6000).astype(float)
    counts = np.zeros(6000)
    for seed in range(200):
        kept = Utility(column="v").keep(rows_of(v=values), share=3000, seed=seed, block=4)
        assert kept.tuples == 3000
        counts += kept.mask
    tied = counts[values == 1]
    assert counts[values == 2].min() == 200
    assert counts[values == 0].max() == 0
    assert tied.std() == pytest.approx(np.sqrt(200 * (p := tied.mean() / 200) * (1 - p)), rel=0.1)


def test_a_missing_value_is_of_no_use() -> None:
    rows = rows_of(v=pa.array([None, 1.0, 2.0]))
    kept = Utility(column="v").keep(rows, share=2, seed=1, block=0)
    assert kept.mask.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * b + 1", [11.0, 41.0]),
        ("IF(a >= 2 AND NOT b = 10, 5, -1)", [-1.0, 5.0]),
        ("intervals(b, 0, 15, 3, 15, 100, 7)", [3.0, 7.0]),
        ("greatest(a, b, 15) % 4", [3.0, 0.0]),
        ("name = 'x' OR a <> 1", [1.0, 1.0]),
        ("coalesce(c, 0)", [0.0, 4.0]),
    ],
)
def test_utility_expressions_speak_sql(text: str, expected: list[float]) -> None:
    rows = rows_of(a=[1, 2], b=[10, 20], c=pa.array([None, 4]), name=["x", "y"])
    assert evaluate(text, rows).tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        *("a +", "foo(a)", "a.b", "[a]", "lambda: 1", "__import__('os')"),
        *("a + 1e999", "a + " + "9" * 400, "a * 1j", "None", "b'x'", "...", "1 < a < 2", "~a"),
        *("if(a)", "intervals(a, 1)", "intervals(a, 1, 2, 3, 4)", "abs(a, a)", "a ** 2", "a()()"),
    ],
)
def test_what_is_no_expression_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(SpillwayError, match="utility"):
        columns_of(text)


def test_a_window_keeps_its_fate_while_decisions_change() -> None:
    shedder = Windows(column="t", length_us=1_000_000)
    fates: dict[int, set[bool]] = {}
    for step in range(400):
        window = step // 4
        held = [Held(window=w, tuples=100) for w in (window - 1, window) if w >= 0]
        shedder = shedder.drawn(held, int(PPM * (0.2 + 0.6 * (step % 7) / 7)), 3)
        for h in held:
            fates.setdefault(h.window, set()).add(dict(shedder.windows)[h.window] > 0)
    assert all(len(found) == 1 for found in fates.values())
    assert {next(iter(found)) for found in fates.values()} == {True, False}


def test_a_late_window_that_nobody_saw_before_is_not_lost_for_that() -> None:
    shedder = Windows(column="t", length_us=1_000_000)
    for window in (10, 11, 8, 12):
        shedder = shedder.drawn([Held(window=window, tuples=50)], PPM, 1)
        assert shedder.kept_tuples == 50
    full = [Held(window=w, tuples=1) for w in range(100, 100 + 2 * REMEMBERED)]
    shedder = shedder.drawn(full, PPM, 1)
    assert {h.window for h in full} <= dict(shedder.windows).keys()
    shedder = shedder.drawn([Held(window=999, tuples=1)], PPM, 1)
    assert len(shedder.windows) == REMEMBERED
    late = [Held(window=9, tuples=50)]
    assert shedder.drawn(late, PPM, 1).kept_tuples == 50, "nothing that is forgotten was at risk"
    for window in range(1_000, 1_000 + REMEMBERED):
        shedder = shedder.drawn([Held(window=window, tuples=50)], PPM // 2, 1)
    newer = [Held(window=w, tuples=1) for w in range(2_000, 2_000 + REMEMBERED)]
    shedder = shedder.drawn(newer, PPM, 1)
    assert shedder.unsure_until >= 1_000
    assert shedder.drawn(late, PPM, 1).kept_tuples == 0, "half of a window would remain"


def test_a_rows_window_is_spark_s_window() -> None:
    shedder = Windows(column="t", length_us=10_000_000, windows=((3, PPM), (5, PPM // 2)))
    rows = rows_of(t=at(np.array([29.9, 30.0, 39.9, 40.0, 50.0])))
    kept = shedder.keep(rows, share=0, seed=0, block=0)
    assert kept.mask.tolist() == [False, True, True, False, True]
    assert kept.weights.tolist() == [1.0, 1.0, 2.0]


def test_a_kept_row_knows_since_when_every_window_stayed() -> None:
    fates = ((2, PPM), (3, 0), (4, PPM), (5, PPM // 2), (6, PPM))
    shedder = Windows(column="t", length_us=10_000_000, windows=fates)
    rows = rows_of(t=at(np.array([65.0, 41.0, 33.0, 25.0, 59.9])))
    kept = shedder.keep(rows, share=0, seed=0, block=0)
    assert kept.kept_from_us is not None
    assert (kept.kept_from_us / 1e6).tolist() == [40.0, 40.0, 20.0, 40.0]


def test_strata_keep_something_of_every_group() -> None:
    groups = np.concatenate([np.zeros(15_000), np.repeat(np.arange(1, 60), 20)]).astype(int)
    RNG.shuffle(groups)
    kept = Strata(column="g").keep(rows_of(g=groups), share=1600, seed=1, block=0)
    assert kept.tuples == 1600
    assert set(groups[kept.mask]) == set(groups)
    smallest = min(int((groups[kept.mask] == g).sum()) for g in range(1, 60))
    assert smallest >= 5  # a uniform sample keeps 2 on average, and none of many


def test_strata_weights_add_up_to_each_group_exactly_where_it_is_certain() -> None:
    groups = np.minimum(RNG.zipf(1.3, 16_000), 40)
    kept = Strata(column="g").keep(rows_of(g=groups), share=2000, seed=2, block=1)
    found = np.bincount(groups[kept.mask], weights=kept.weights, minlength=41)
    assert found == pytest.approx(np.bincount(groups, minlength=41))


def test_strata_with_more_groups_than_places_are_unbiased() -> None:
    groups = np.minimum(RNG.zipf(1.3, 4000), 2000)
    share, trials = 200, 400
    assert len(set(groups)) > share
    total = np.zeros(2001)
    for seed in range(trials):
        kept = Strata(column="g").keep(rows_of(g=groups), share=share, seed=seed, block=0)
        assert kept.tuples == share
        total += np.bincount(groups[kept.mask], weights=kept.weights, minlength=2001)
    truth = np.bincount(groups, minlength=2001)
    assert total[1:6] / trials == pytest.approx(truth[1:6], rel=0.08)
    assert (total / trials).sum() == pytest.approx(4000, rel=0.02)


def test_without_anything_to_drop_rows_without_an_event_time_stay() -> None:
    shedder = Windows(column="t", length_us=1_000_000)
    times = pa.array([None, 1_000_000, None], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"t": times})
    batch = Batch(tuples=3, keep_ppm=PPM, seed=1, limit_ppm=None, blocks=iter([rows]))
    decided = shedder.decided(batch)
    kept = decided.keep(rows, share=3, seed=1, block=0)
    assert (decided.kept_tuples, kept.tuples) == (3, 3)
    batch = Batch(tuples=3, keep_ppm=PPM // 2, seed=1, limit_ppm=None, blocks=iter([rows]))
    decided = decided.decided(batch)
    assert decided.keep(rows, share=1, seed=1, block=0).tuples == decided.kept_tuples == 1

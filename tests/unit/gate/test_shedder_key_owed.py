"""Whole keys against decided shares: what a batch keeps too much or too little, the next owes."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from spillway.gate.sampling import PPM
from spillway.gate.shedders.key import Key
from spillway.gate.shedders.shedder import Batch

KEY = Key(column="k", length_us=1_000_000, time_column="t")
SHARE = 300_000


def rows_of(keys: np.ndarray, epoch: int) -> pa.Table:
    times = np.full(len(keys), epoch * 1_000_000, dtype=np.int64)
    return pa.table({"k": keys, "t": pa.array(times, pa.timestamp("us", tz="UTC"))})


def batch(rows: pa.Table, keep_ppm: int = SHARE, limit_ppm: int | None = None) -> Batch:
    return Batch(
        blocks=[rows], tuples=rows.num_rows, keep_ppm=keep_ppm, seed=1, limit_ppm=limit_ppm
    )


def kept_by(shedder: Key, rows: pa.Table) -> int:
    return int(shedder.keep(rows, share=0, seed=1, block=0).mask.sum())


def test_what_was_counted_is_what_rows_keep_to_the_key_at_the_limit() -> None:
    rng = np.random.default_rng(3)
    for epoch in range(50):
        rows = rows_of(rng.integers(0, 40, 1000), epoch)
        decided = KEY.decided(batch(rows))
        assert decided.kept_tuples == kept_by(decided, rows)
        assert decided.limit_ppm in KEY.places(rows, 1), "it is the place of a key that goes"


@pytest.mark.parametrize(
    "keys_in",
    [
        lambda rng: rng.integers(0, 40, 1000),
        lambda rng: np.where(rng.random(1000) < 0.9, 7, rng.integers(0, 40, 1000)),
    ],
)
def test_in_the_long_run_as_many_are_kept_as_were_decided(
    keys_in: Callable[[np.random.Generator], np.ndarray],
) -> None:
    """Also where one key is nine tenths of the stream, and a batch keeps nearly all or nothing."""
    rng, shedder, kept = np.random.default_rng(4), KEY, 0
    for epoch in range(400):
        rows = rows_of(keys_in(rng), epoch)
        shedder = shedder.decided(batch(rows))
        kept += shedder.kept_tuples
        assert abs(shedder.owed_tuples) <= 1000, "no more than a batch"
    assert kept / 400_000 == pytest.approx(0.3, abs=0.01)


def test_a_gate_that_follows_owes_against_the_limit_that_it_was_given() -> None:
    rows = rows_of(np.arange(1000), 0)
    followed = KEY.decided(batch(rows, limit_ppm=500_000))
    assert followed.limit_ppm == 500_000
    assert followed.kept_tuples == kept_by(followed, rows)
    assert followed.owed_tuples == 300 - followed.kept_tuples


@pytest.mark.parametrize(("keep_ppm", "limit_ppm"), [(PPM, None), (SHARE, PPM)])
def test_where_all_is_kept_nothing_stays_owed(keep_ppm: int, limit_ppm: int | None) -> None:
    rows = rows_of(np.arange(100), 0)
    owing = KEY.decided(batch(rows_of(np.zeros(1000, dtype=np.int64), 3)))
    assert owing.owed_tuples != 0
    decided = owing.decided(batch(rows, keep_ppm, limit_ppm))
    assert (decided.limit_ppm, decided.kept_tuples, decided.owed_tuples) == (PPM, 100, 0)
    assert kept_by(decided, rows) == 100

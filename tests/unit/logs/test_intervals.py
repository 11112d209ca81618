import numpy as np
import pytest

from spillway.logs.intervals import NOWHERE, among, holds, interval, runs, size, union


def expanded(found: np.ndarray) -> set[int]:
    return {p for start, stop in found.tolist() for p in range(start, stop)}


@pytest.mark.parametrize("seed", range(30))
def test_they_are_the_sets_that_they_stand_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [np.unique(rng.integers(0, 80, rng.integers(0, 40))) for _ in range(4)]
    sets = [runs(positions) for positions in lists]
    every = union(sets)
    assert expanded(every) == {int(p) for positions in lists for p in positions}
    assert size(every) == len(expanded(every))
    assert (every[1:, 0] > every[:-1, 1]).all(), "neither overlap nor touch"
    for position in range(-1, 82):
        assert holds(every, position) == (position in expanded(every))
    chosen = np.flatnonzero(rng.random(90) < 0.5)
    assert expanded(among(chosen, every)) == set(chosen.tolist()) & expanded(every)


def test_nothing_is_a_set_too() -> None:
    nothing = np.empty(0, dtype=np.int64)
    for empty in (NOWHERE, runs(nothing), union([]), union([NOWHERE]), interval(3, 3)):
        assert empty.shape == (0, 2)
        assert size(empty) == 0
        assert not holds(empty, 0)
    assert among(nothing, interval(0, 9)).shape == (0, 2)
    assert among(np.arange(9), NOWHERE).shape == (0, 2)


def test_a_long_interval_costs_one_row() -> None:
    whole = union([interval(0, 10**15), interval(10**15, 10**18)])
    assert whole.tolist() == [[0, 10**18]]
    assert size(whole) == 10**18

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.workloads import curves, named
from spillway.workloads.curves import arrivals_of


def counts(times_s: np.ndarray, width_s: float, duration_s: float) -> np.ndarray:
    return np.histogram(times_s, bins=int(duration_s / width_s), range=(0, duration_s))[0]


@pytest.mark.parametrize("name", named.WORKLOADS)
def test_every_workload_is_sorted_seeded_and_inside_its_duration(name: str) -> None:
    times_s = named.make(name, seed=7, duration_s=30.0, rate_per_s=100.0)
    assert np.all(np.diff(times_s) >= 0.0)
    assert times_s[0] >= 0.0
    assert times_s[-1] < 30.0
    assert np.array_equal(times_s, named.make(name, seed=7, duration_s=30.0, rate_per_s=100.0))
    other = named.make(name, seed=8, duration_s=30.0, rate_per_s=100.0)
    assert len(other) != len(times_s) or not np.array_equal(times_s, other)


@pytest.mark.parametrize("name", ["constant", "step", "ramp", "sine", "staircase", "pareto", "web"])
def test_the_rate_of_a_workload_is_its_mean(name: str) -> None:
    times_s = named.make(name, seed=2, duration_s=400.0, rate_per_s=250.0)
    assert len(times_s) == pytest.approx(400.0 * 250.0, rel=0.01)


def test_a_step_jumps_at_its_time_and_nowhere_else() -> None:
    times_s = arrivals_of(curves.step(100.0, 300.0, 10.0, 20.0), 20.0, seed=1)
    seen = counts(times_s, 1.0, 20.0)
    assert np.all(np.abs(seen[:10] - 100) <= 1)
    assert np.all(np.abs(seen[10:] - 300) <= 1)


def test_a_ramp_grows_by_the_same_amount_every_second() -> None:
    seen = counts(arrivals_of(curves.ramp(0.0, 1000.0, 10.0), 10.0, seed=1), 1.0, 10.0)
    assert np.all(np.abs(np.diff(seen) - 100) <= 2)


def test_the_dissp_staircase_is_50_100_150_100_50_from_ten_sources() -> None:
    times_s = arrivals_of(curves.dissp_staircase(50.0), 50.0, seed=1)
    assert list(counts(times_s, 10.0, 50.0) // 100 * 10) == pytest.approx(
        [500, 1000, 1500, 1000, 500], abs=10
    )


def test_s_c_goes_from_200_to_350_at_ten_seconds() -> None:
    seen = counts(arrivals_of(curves.s_c(20.0), 20.0, seed=1), 10.0, 20.0)
    assert list(seen) == pytest.approx([2000, 3500], abs=1)


def test_s_step_rises_every_forty_seconds_after_ten() -> None:
    seen = counts(arrivals_of(curves.s_step(90.0), 90.0, seed=1), 10.0, 90.0)
    assert list(seen) == pytest.approx([2000] + 4 * [4000] + 4 * [6000], abs=1)


def test_an_unknown_workload_names_the_nearest_one() -> None:
    with pytest.raises(SpillwayError, match="did you mean 'pareto'"):
        named.make("paretto", seed=1, duration_s=1.0, rate_per_s=1.0)


@pytest.mark.parametrize(("duration_s", "rate"), [(0.0, 10.0), (10.0, 0.0), (10.0, -1.0)])
def test_a_workload_without_time_or_rate_is_refused(duration_s: float, rate: float) -> None:
    with pytest.raises(SpillwayError, match="above zero"):
        named.make("web", seed=1, duration_s=duration_s, rate_per_s=rate)

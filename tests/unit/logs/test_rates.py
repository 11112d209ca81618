import pytest

from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log, pinned
from spillway.logs.rates import parse_rates


def extent(options: dict[str, str], after_s: float) -> int:
    log = open_log({"source": "synthetic", "start": "1000", **options})
    return sum(span.tuples for span in log.extent(1000.0 + after_s))


def test_a_profile_steps_the_rate() -> None:
    profile = {"rate": "0:1000,30:5000"}
    assert [extent(profile, t) for t in (1, 30, 31)] == [1000, 30_000, 35_000]


def test_a_million_rows_a_second_for_a_year_is_still_exact() -> None:
    assert extent({"rate": "1e6"}, 3.2e7) == 32_000_000_000_000


def test_the_stream_ends_after_the_wanted_tuples_over_all_partitions() -> None:
    assert extent({"tuples": "1001", "partitions": "3"}, 3600.0) == 1001


@pytest.mark.parametrize("workload", ["constant", "step", "ramp", "sine", "pareto", "web"])
def test_a_workload_has_its_mean_rate_also_when_tuples_stand_for_several(workload: str) -> None:
    options = {"workload": workload, "duration": "100s"}
    slow, fast = (extent({**options, "rate": rate}, 1000.0) for rate in ("2e3", "2e6"))
    assert slow == pytest.approx(2e6, rel=0.4)
    assert fast == pytest.approx(1000 * slow, rel=0.4)


@pytest.mark.parametrize("rate", ["fast", "5:100", "0:5,0:6", "0:-1", "0:1,x", "0", "1e12"])
def test_a_rate_that_makes_no_sense_is_named(rate: str) -> None:
    with pytest.raises(SpillwayError, match="option 'rate'"):
        parse_rates(rate)


def test_pinning_fixes_the_start_once() -> None:
    first = pinned({"source": "synthetic"}, 1234.5)
    assert first["start"] == "1234.5"
    assert pinned(first, 9999.0) == first
    assert pinned({"source": "files", "path": "x"}, 1.0) == {"source": "files", "path": "x"}

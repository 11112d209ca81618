import pytest

from spillway.errors import SpillwayError
from spillway.model import Target, parse_duration_s


@pytest.mark.parametrize(
    ("text", "delay_s", "statistic"),
    [
        ("2s", 2.0, "mean"),
        ("300ms", 0.3, "mean"),
        ("p99 2s", 2.0, "p99"),
        ("p95 1m", 60.0, "p95"),
        ("p99 2 Seconds", 2.0, "p99"),
        ("5 milliseconds", 0.005, "mean"),
    ],
)
def test_a_target_names_its_statistic_and_a_bare_duration_is_a_mean(
    text: str, delay_s: float, statistic: str
) -> None:
    target = Target.parse(text)
    assert target.delay_s == pytest.approx(delay_s)
    assert target.statistic == statistic


@pytest.mark.parametrize("text", ["0s", "-2s", "2", "p98 2s", "soon", "", "p99 2s 3s"])
def test_a_bad_target_is_refused_in_one_line_that_shows_the_value(text: str) -> None:
    with pytest.raises(SpillwayError) as caught:
        Target.parse(text)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in text.split()[-1:])


def test_a_target_of_zero_seconds_is_refused() -> None:
    with pytest.raises(SpillwayError, match="at least 1ms"):
        Target(delay_s=0.0)


def test_quantiles_of_the_statistics() -> None:
    assert Target.parse("2s").quantile is None
    assert Target.parse("p99 2s").quantile == 0.99


def test_durations_have_units() -> None:
    assert parse_duration_s("1.5h") == 5400.0
    assert parse_duration_s("250us") == pytest.approx(0.00025)

"""What a query's SQL says of its time windows."""

import pytest

from spillway.flow.sql import parse
from spillway.flow.time_windows import TimeWindow, interval_us, shown, time_windows


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("10 seconds", 10_000_000),
        ("1 minute 30 seconds", 90_000_000),
        ("INTERVAL 2 Hours", 7_200_000_000),
        ("500 milliseconds", 500_000),
        ("0.5 seconds", 500_000),
        ("1 month", None),
        ("10s", None),
        ("soon", None),
    ],
)
def test_intervals_are_read_as_spark_reads_them(text: str, expected_us: int | None) -> None:
    assert interval_us(text) == expected_us


def test_every_window_is_found_with_its_parts() -> None:
    sql = (
        "SELECT window(t, '10 seconds') AS w FROM s"
        " GROUP BY window(t, '10 seconds', '5 seconds', '1 second'), window(t, INTERVAL 1 MINUTE)"
    )
    found = list(time_windows(parse("q", sql)))
    assert TimeWindow(column="t", length_us=10_000_000, slide_us=10_000_000) in found
    assert TimeWindow(column="t", length_us=60_000_000, slide_us=60_000_000) in found
    sliding = TimeWindow(column="t", length_us=10_000_000, slide_us=5_000_000, start_us=1_000_000)
    assert sliding in found
    assert not sliding.tumbling


def test_a_window_whose_length_is_a_parameter_is_left_out() -> None:
    assert not list(time_windows(parse("q", "SELECT 1 FROM s GROUP BY window(t, :size)")))


def test_durations_are_shown_in_the_largest_unit_that_fits() -> None:
    assert [shown(us) for us in (90_000_000, 60_000_000, 500_000, 7)] == [
        "90s",
        "1m",
        "500ms",
        "7us",
    ]

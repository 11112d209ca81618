"""Arrivals from the times that records bear, in whatever order they come."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from spillway.logs.kafka_record_times import MOST_POINTS, SAMPLES, RecordTimes
from spillway.ports import Span


@dataclass
class Topic:
    """A record every 10 ms; every tenth position is a marker and holds none."""

    shift_s: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(1_000_000))
    asked: list[int] = field(default_factory=list)

    def look(self, span: Span, wanted: npt.NDArray[np.int64]) -> list[tuple[int, float]]:
        assert all(span.start <= p < span.stop for p in wanted.tolist())
        self.asked += wanted.tolist()
        return [(p, self.time_s(p)) for p in wanted.tolist() if p % 10 != 9]

    def time_s(self, position: int) -> float:
        return 1e9 + 0.01 * position + float(self.shift_s[position])


def span(start: int, stop: int) -> Span:
    return Span(partition=0, start=start, stop=stop)


def error_s(topic: Topic, times: RecordTimes, start: int, stop: int) -> float:
    positions = np.arange(start, stop)
    found = times.curve(span(start, stop)).times_of(positions)
    return float(np.abs(found - [topic.time_s(p) for p in positions.tolist()]).max())


def test_what_is_new_is_looked_up_once() -> None:
    topic = Topic()
    times = RecordTimes(topic.look)
    assert error_s(topic, times, 100, 300) < 0.4
    assert error_s(topic, times, 100, 300) < 0.4
    assert len(topic.asked) == SAMPLES
    assert error_s(topic, times, 200, 500) < 0.4
    assert len(topic.asked) == 2 * SAMPLES
    assert min(topic.asked[SAMPLES:]) >= 300


def test_what_came_before_is_looked_up_when_it_is_asked_for() -> None:
    topic = Topic()
    times = RecordTimes(topic.look)
    assert error_s(topic, times, 500, 700) < 1.0
    assert error_s(topic, times, 0, 700) < 1.0


def test_rows_that_arrived_late_are_as_old_as_they_are() -> None:
    """A batch that waited a minute longer at the first gate, between two that did not."""
    topic = Topic()
    topic.shift_s[200:400] = -60.0
    times = RecordTimes(topic.look)
    for start in (0, 200, 400):
        curve = times.curve(span(start, start + 200))
        middle = np.array([start + 100])
        assert curve.times_of(middle)[0] == pytest.approx(topic.time_s(start + 100), abs=1.0)


def test_where_nothing_can_be_read_there_is_a_curve_all_the_same() -> None:
    times = RecordTimes(lambda span, wanted: [])
    assert times.curve(span(5, 5)).positions.tolist() == [5]
    assert times.curve(span(5, 50)).positions.tolist() == [5, 50]


def test_memory_is_bounded_and_the_past_can_be_looked_up_again() -> None:
    topic = Topic()
    times = RecordTimes(topic.look)
    for start in range(0, 100_000, 100):
        times.curve(span(start, start + 100))
    assert len(times._positions) <= MOST_POINTS + SAMPLES
    assert error_s(topic, times, 100, 300) < 0.4

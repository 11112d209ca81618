import numpy as np

from spillway.logs.kafka_history import HISTORY_POINTS, WatermarkHistory


def history(*samples: tuple[int, float]) -> WatermarkHistory:
    made = WatermarkHistory()
    for position, now_s in samples:
        made.record(position, now_s)
    return made


def test_tuples_between_two_samples_are_spread_evenly() -> None:
    curve = history((100, 10.0), (200, 20.0)).curve(100, 200)
    assert np.allclose(curve.times_of(np.array([109, 149, 199])), [11.0, 15.0, 20.0])


def test_a_burst_after_a_pause_does_not_look_like_a_trickle() -> None:
    curve = history((0, 0.0), (10, 1.0), (10, 50.0), (20, 51.0)).curve(0, 20)
    assert curve.times_of(np.array([9]))[0] == 1.0
    assert 50.0 < curve.times_of(np.array([10]))[0] <= 51.0


def test_a_single_tuple_after_a_pause_arrives_with_its_sample() -> None:
    curve = history((10, 1.0), (10, 50.0), (11, 51.0)).curve(10, 11)
    assert curve.times_of(np.array([10]))[0] == 51.0


def test_older_samples_go_before_the_known_ones_with_their_pauses() -> None:
    made = history((100, 100.0), (110, 101.0))
    made.seed([(0, 0.0), (50, 5.0), (50, 90.0), (100, 95.0)])
    curve = made.curve(0, 110)
    assert curve.times_of(np.array([49]))[0] == 5.0
    assert curve.times_of(np.array([50]))[0] > 90.0
    assert curve.times_of(np.array([109]))[0] == 101.0


def test_a_clock_that_is_set_back_leaves_no_arrival_in_the_future() -> None:
    made = history((0, 1000.0), (10, 1001.0), (20, 500.0), (30, 501.0))
    curve = made.curve(0, 30)
    assert (np.diff(curve.times_s) >= 0).all()
    assert curve.times_s[-1] == 501.0
    assert curve.times_of(np.array([9]))[0] <= 500.0


def test_the_past_gets_coarser_and_the_present_stays() -> None:
    made = history(*((position, position / 10.0) for position in range(3 * HISTORY_POINTS)))
    stop = 3 * HISTORY_POINTS - 1
    curve = made.curve(0, stop)
    assert len(curve.positions) <= HISTORY_POINTS + 1
    everyone = np.arange(stop)
    assert np.abs(curve.times_of(everyone) - (everyone + 1) / 10.0).max() < 0.11

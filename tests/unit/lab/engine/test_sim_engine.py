"""What the papers saw must come out of the mechanisms: blocking, batching, windows, c_s."""

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.load.laws import make
from spillway.model import Decision, KeepFraction, KeepOfBacklog, Target
from spillway_lab.engine.engine import NetworkPlant
from spillway_lab.engine.network import Network, Operator, RangeWindow, Stream, chain
from spillway_lab.engine.networks import make_setting
from spillway_lab.engine.run import Run, simulate
from spillway_lab.engine.settings import Engine
from spillway_lab.engine.statistics import Floats
from spillway_lab.engine.steps import Disturbances, Steps

TWO_SECONDS = Target(delay_s=2.0)


def even(rate_per_s: float, duration_s: float, start_s: float = 0.0) -> Floats:
    return start_s + (np.arange(int(rate_per_s * duration_s)) + 0.5) / rate_per_s


def run_setting(name: str, arrivals: Floats, duration_s: float, law: str = "none") -> Run:
    setting = make_setting(name)
    times = {stream.name: arrivals for stream in setting.network.streams}
    plant = NetworkPlant(
        setting.network, times, target=TWO_SECONDS, engine=setting.engine, delay=setting.delay
    )
    return simulate(plant, make(law), duration_s, 1.0)


def test_below_capacity_the_delay_stays_and_above_it_grows_at_the_modelled_rate() -> None:
    """ctrl paper fig. 5: delay grows by rate / capacity - 1 seconds per second."""
    light = run_setting("ctrl", even(150.0, 20.0), 20.0)
    assert np.nanmax(light.delay_s) < 0.1
    heavy = run_setting("ctrl", even(285.0, 20.0), 20.0)
    growth = np.diff(heavy.delay_by_arrival_s[2:12])
    assert growth.mean() == pytest.approx(285.0 / 190.0 - 1.0, rel=0.05)


def test_the_virtual_queue_predicts_the_delay_on_a_flat_network() -> None:
    """ctrl paper eq. 2: y(k) = c/H (q(k-1) + 1), for the tuples that arrive in period k."""
    run = run_setting("ctrl", even(285.0, 30.0), 30.0)
    predicted = (run.queued[:-1] + 1) / 190.0
    measured = run.delay_by_arrival_s[1:]
    known = slice(5, 15)
    assert measured[known] - predicted[known] == pytest.approx(0.25, abs=0.25)


def test_cost_per_tuple_falls_as_the_rate_rises() -> None:
    """Thesis fig. 13 and 14: 120 us alone would be 8,300 tuples/s; 30,000 are still sustained."""
    slow = run_setting("qn-light", even(1_000.0, 3.0), 3.0)
    fast = run_setting("qn-light", even(30_000.0, 3.0), 3.0)
    assert slow.mean_delay_s == pytest.approx(120e-6, rel=0.05)
    assert fast.cost_s[-1] < 0.5 * slow.cost_s[-1]
    assert fast.delay_s[2] == pytest.approx(fast.delay_s[1], rel=0.2)  # higher, but it stays
    assert slow.mean_delay_s < fast.mean_delay_s < 0.1
    over = run_setting("qn-light", even(45_000.0, 3.0), 3.0)
    assert over.delay_s[2] > 1.5 * over.delay_s[1]


def test_a_full_queue_of_another_class_blocks_the_shared_segment() -> None:
    """Thesis fig. 5: class 3 is overloaded, class 1 shares a segment with it and suffers."""

    def mean_delay_s(queue_tuples: int) -> float:
        shared = Operator(name="shared", cost_s=1e-4, class_name="one")
        high = Operator(name="high", cost_s=1e-4, inputs=("shared",), class_name="one")
        low = Operator(name="low", cost_s=2e-2, inputs=("shared",), class_name="three")
        network = Network(operators=(shared, high, low), streams=(Stream(class_name="one"),))
        engine = Engine(queue_tuples=queue_tuples, batch_tuples=1, scheduler="highest-rate")
        plant = NetworkPlant(
            network, even(100.0, 20.0), target=TWO_SECONDS, engine=engine, delay="output"
        )
        plant.begin(1.0, {})
        plant.advance(20.0)
        list(plant.observe())
        return plant.classes["one"].delays.mean_s

    assert mean_delay_s(queue_tuples=10_000) < 0.1
    assert mean_delay_s(queue_tuples=20) > 2.0


def test_the_selectivity_of_a_range_window_join_grows_with_the_rate() -> None:
    """Thesis fig. 19: twice the rate, twice the matches per tuple, four times the results."""

    def results_per_tuple(rate_per_s: float) -> float:
        window = RangeWindow(seconds=2.0, tuples=200.0)
        join = Operator(name="join", cost_s=1e-5, selectivity=0.5, window=window)
        plant = NetworkPlant(
            Network(operators=(join,)), even(rate_per_s, 10.0), target=TWO_SECONDS, delay="output"
        )
        run = simulate(plant, make("none"), 10.0, 1.0)
        return float(run.outputs[4:].sum() / run.completed[4:].sum())

    assert results_per_tuple(100.0) == pytest.approx(0.5, rel=0.1)
    assert results_per_tuple(200.0) == pytest.approx(1.0, rel=0.1)


def test_dropped_tuples_alone_can_overload_the_engine() -> None:
    """Thesis fig. 20: at the cap of 99 % shedding, bookkeeping still takes all the time."""

    def completed_in_time(rate_per_s: float) -> float:
        setting = make_setting("qn-flat")
        arrivals = even(rate_per_s, 20.0)
        plant = NetworkPlant(setting.network, arrivals, target=TWO_SECONDS, engine=setting.engine)
        plant.begin(1.0, {})
        plant.actuate("default", Decision(action=KeepFraction(fraction=0.01), reason="test"))
        plant.advance(20.0)
        totals, delays = plant.totals("default"), plant.classes["default"].delays
        return (totals.completed_tuples - delays.delayed_tuples) / totals.admitted_tuples

    assert completed_in_time(1_500.0) > 0.99
    assert completed_in_time(4_000.0) < 0.1


def test_shedding_is_capped() -> None:
    plant = NetworkPlant(Network(operators=chain([1e-5])), even(10_000.0, 2.0), target=TWO_SECONDS)
    plant.begin(1.0, {})
    plant.actuate("default", Decision(action=KeepFraction(fraction=0.0), reason="test"))
    plant.advance(2.0)
    totals = plant.totals("default")
    assert totals.shed_tuples == pytest.approx(0.99 * totals.offered_tuples, rel=1e-3)


def test_a_background_job_takes_capacity_away() -> None:
    background = Steps(times_s=[5.0], values=[0.5], before=0.0)
    plant = NetworkPlant(
        Network(operators=chain([5e-3])),
        even(150.0, 10.0),
        target=TWO_SECONDS,
        disturbances=Disturbances(background=background),
    )
    run = simulate(plant, make("none"), 10.0, 1.0)
    assert run.delay_s[4] < 0.05
    assert run.delay_s[9] > 1.0


def test_a_cost_trace_changes_the_measured_cost() -> None:
    trace = Steps(times_s=[5.0], values=[3.0])
    plant = NetworkPlant(
        Network(operators=chain([1e-3])),
        even(100.0, 10.0),
        target=TWO_SECONDS,
        disturbances=Disturbances(cost_factor=trace),
    )
    run = simulate(plant, make("none"), 10.0, 1.0)
    assert run.cost_s[3] == pytest.approx(1e-3)
    assert run.cost_s[8] == pytest.approx(3e-3)


def test_keep_of_backlog_sheds_from_the_input_buffer_and_looks_at_every_tuple() -> None:
    plant = NetworkPlant(
        Network(operators=chain([0.1])),
        even(100.0, 1.0),
        target=TWO_SECONDS,
        engine=Engine(queue_tuples=1, shed_cost_s=0.01),
    )
    plant.begin(1.0, {"default": make("dissp")})
    plant.advance(1.0)
    (measured,) = plant.observe()
    waiting = measured.backlog.pending_tuples
    assert waiting > 80
    plant.actuate("default", Decision(action=KeepOfBacklog(tuples=10), reason="test"))
    assert plant.totals("default").pending_tuples == 10
    assert plant.totals("default").shed_tuples == waiting - 10
    completed = plant.totals("default").completed_tuples
    plant.advance(1.0 + 0.01 * waiting)  # locked: the bookkeeping of all that waited comes first
    assert plant.totals("default").completed_tuples <= completed + 1


def test_delay_is_of_every_tuple_or_of_outputs_or_from_the_oldest_input() -> None:
    filters = Network(operators=chain([1e-3, 1e-3], [0.5, 1.0]))
    counts = {}
    for delay in ("every-tuple", "output"):
        plant = NetworkPlant(filters, even(100.0, 5.0), target=TWO_SECONDS, delay=delay)
        counts[delay] = simulate(plant, make("none"), 5.0, 1.0).delays.tuples
    assert counts["every-tuple"] == 500
    assert 200 < counts["output"] < 300
    window = Network(operators=(Operator(name="rows", cost_s=1e-6, rows=10),))
    delays = {}
    for delay in ("output", "oldest-input"):
        plant = NetworkPlant(window, even(100.0, 5.0), target=TWO_SECONDS, delay=delay)
        delays[delay] = simulate(plant, make("none"), 5.0, 1.0).mean_delay_s
    assert delays["output"] < 0.001
    assert delays["oldest-input"] == pytest.approx(0.09, rel=0.05)


def test_a_tuple_with_several_paths_leaves_with_its_last_copy() -> None:
    slow = Operator(name="slow", cost_s=0.5)
    fast = Operator(name="fast", cost_s=0.1)
    plant = NetworkPlant(Network(operators=(fast, slow)), np.array([0.0]), target=TWO_SECONDS)
    run = simulate(plant, make("none"), 1.0, 1.0)
    assert run.delays.tuples == 1
    assert run.mean_delay_s == pytest.approx(0.6)


def test_on_shared_operators_the_virtual_queue_is_wrong_and_the_queued_load_is_right() -> None:
    """Thesis 3.3.1: every result is taken for a departure, so the queue seems empty."""
    run = run_setting("qn-complex", even(350.0, 5.0), 5.0)
    assert run.queued[-1] == 0
    assert run.queued_load_s[-1] > 1.0
    assert run.totals.in_flight_tuples > 300


def test_the_same_seed_gives_the_same_run_bit_for_bit() -> None:
    def once() -> Run:
        return run_setting("qn-flat", even(350.0, 10.0), 10.0, "ctrl")

    first, second = once(), once()
    for name in ("offered", "shed", "delay_s", "queued", "cost_s", "keep_fraction"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.accumulated_violation_s == second.accumulated_violation_s


def test_under_overload_ctrl_settles_at_its_target_and_follows_a_new_one() -> None:
    setting = make_setting("ctrl")
    plant = NetworkPlant(
        setting.network, even(300.0, 60.0), target=TWO_SECONDS, engine=setting.engine
    )
    changes = [(30.0, Target(delay_s=1.0))]
    run = simulate(plant, make("ctrl"), 60.0, 1.0, target_changes=changes)
    assert run.delay_s[15:30].mean() == pytest.approx(2.0, rel=0.1)
    assert run.delay_s[45:].mean() == pytest.approx(1.0, rel=0.1)
    assert run.target_s[29] == 2.0
    assert run.target_s[30] == 1.0


@pytest.mark.parametrize(
    "arrivals", [np.array([1.0, 0.5]), np.array([-1.0, 0.5]), np.array([np.nan])]
)
def test_bad_arrivals_are_refused(arrivals: Floats) -> None:
    with pytest.raises(SpillwayError, match="arrival times of stream 'input'"):
        NetworkPlant(Network(operators=chain([1e-3])), arrivals, target=TWO_SECONDS)

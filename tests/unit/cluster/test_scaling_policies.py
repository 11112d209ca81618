"""Thresholds, control, true rates: what each policy wishes for."""

from dataclasses import replace

import pytest

from spillway.cluster.scaling.control import Control
from spillway.cluster.scaling.demand import demand_cores, host_demand
from spillway.cluster.scaling.global_thresholds import GlobalThresholds
from spillway.cluster.scaling.latency_sarsa import LatencySarsa
from spillway.cluster.scaling.local_thresholds import LocalThresholds
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings
from spillway.cluster.scaling.sarsa import Situation
from spillway.cluster.scaling.sarsa_table import STATES, Choice, state_of
from spillway.cluster.scaling.true_rate import TrueRate
from spillway.cluster.views import ClusterView, HostView, OperatorView, QueryView, Resources
from spillway.errors import SpillwayError

NOBODY: frozenset[str] = frozenset()


def view(time_s: float, **utilisation: float) -> ClusterView:
    def host(name: str, cpu: float) -> HostView:
        op = OperatorView(name=f"{name}.op", queries=("q",), use=Resources(cpu_cores=cpu))
        return HostView(name=name, capacity=Resources(cpu_cores=1.0), operators=(op,))

    return ClusterView(time_s=time_s, hosts=tuple(host(n, u) for n, u in utilisation.items()))


def test_local_thresholds_wait_for_three_violations_in_a_row() -> None:
    policy = LocalThresholds(ScalingSettings())
    loads = (0.9, 0.9, 0.7, 0.9, 0.9, 0.9)
    wished = [policy.decide(view(5.0 * k, h=u), NOBODY).wishes for k, u in enumerate(loads)]
    assert [bool(wishes) for wishes in wished] == [False] * 5 + [True]
    assert isinstance(wished[-1][0], Relieve)
    assert wished[-1][0].to_utilisation == 0.6


def test_local_thresholds_leave_a_host_alone_during_its_grace_period() -> None:
    policy = LocalThresholds(ScalingSettings(consecutive=1, grace_s=30.0))
    times = [5.0 * k for k in range(10)]
    acted = [t for t in times if policy.decide(view(t, h=0.9), NOBODY).wishes]
    assert acted == [0.0, 30.0]


def test_a_host_that_received_an_operator_is_in_its_grace_period_too() -> None:
    policy = LocalThresholds(ScalingSettings(consecutive=1, grace_s=30.0))
    policy.decide(view(0.0, h=0.5), NOBODY)
    fuller = view(5.0, h=0.5)
    extra = OperatorView(name="new", queries=("q",), use=Resources(cpu_cores=0.4))
    host = fuller.hosts[0]
    fuller = replace(fuller, hosts=(replace(host, operators=(*host.operators, extra)),))
    assert not policy.decide(fuller, NOBODY).wishes


def test_global_thresholds_do_not_see_one_full_host_among_idle_ones() -> None:
    policy = GlobalThresholds(ScalingSettings(consecutive=1))
    assert not policy.decide(view(0.0, a=1.0, b=0.5, c=0.5), NOBODY).wishes


def test_global_thresholds_relieve_all_above_the_target_and_release_the_idlest() -> None:
    settings = ScalingSettings(consecutive=1)
    full = GlobalThresholds(settings).decide(view(0.0, a=0.95, b=0.9, c=0.6), NOBODY).wishes
    assert {wish.host for wish in full} == {"a", "b"}
    idle = GlobalThresholds(settings).decide(view(0.0, a=0.3, b=0.1), NOBODY).wishes
    assert [(type(wish), wish.host) for wish in idle] == [(Release, "b")]


def test_control_grows_towards_demand_over_target_and_does_not_react_to_one_spike() -> None:
    policy = Control(ScalingSettings())
    assert not policy.decide(view(0.0, a=0.6, b=0.6, c=0.6), NOBODY).wishes
    assert not policy.decide(view(5.0, a=0.75, b=0.75, c=0.75), NOBODY).wishes
    wished = [policy.decide(view(5.0 * k, a=0.79, b=0.79, c=0.79), NOBODY) for k in range(2, 9)]
    assert any(wishes.wishes for wishes in wished)


def chain(rate_per_s: float, measured_cpu: float) -> ClusterView:
    """A filter (1 ms a tuple, keeps half) and an aggregate (4 ms a tuple) on one host."""
    operators = (
        OperatorView(
            name="f",
            queries=("q",),
            use=Resources(cpu_cores=measured_cpu / 3.0),
            selectivity=0.5,
            true_rate_per_s=1000.0,
        ),
        OperatorView(
            name="a",
            queries=("q",),
            use=Resources(cpu_cores=measured_cpu * 2.0 / 3.0),
            upstream=("f",),
            true_rate_per_s=250.0,
        ),
    )
    host = HostView(name="h", capacity=Resources(cpu_cores=1.0), operators=operators)
    query = QueryView(
        name="q",
        class_name="c",
        priority=1,
        operators=("f", "a"),
        offered_rate_per_s=rate_per_s,
    )
    return ClusterView(time_s=0.0, hosts=(host,), queries=(query,))


def test_demand_follows_offered_rate_selectivity_and_true_rate_beyond_saturation() -> None:
    seen = chain(1000.0, measured_cpu=1.0)
    assert demand_cores(seen) == pytest.approx({"f": 1.0, "a": 2.0})
    assert host_demand(seen, demand_cores(seen)) == pytest.approx({"h": 3.0})


def test_true_rate_relieves_a_saturated_host_by_its_whole_excess() -> None:
    policy = TrueRate(ScalingSettings())
    for k in range(3):
        wishes = policy.decide(replace(chain(1000.0, 1.0), time_s=5.0 * k), NOBODY)
    assert [wish.host for wish in wishes.wishes] == ["h"]
    assert sum(wishes.demand_cores.values()) == pytest.approx(3.0)


def test_true_rate_leaves_a_fitting_load_alone() -> None:
    policy = TrueRate(ScalingSettings())
    for k in range(10):
        assert not policy.decide(replace(chain(200.0, 0.6), time_s=5.0 * k), NOBODY).wishes


def test_latency_sarsa_learns_that_standing_idle_does_not_pay() -> None:
    """The paper's reward pays 1 for standing still anywhere; 0.25 would stay for ever."""
    policy = LatencySarsa(ScalingSettings(lower=0.2, consecutive=1))
    acted = [policy.decide(view(5.0 * k, a=0.25, b=0.6), NOBODY).wishes for k in range(40)]
    assert not acted[0]
    assert any(isinstance(wish, Release) and wish.host == "a" for got in acted for wish in got)


@pytest.mark.parametrize(
    ("ratio", "level"), [(0.0, 0), (1.0, 0), (1.01, 1), (2.0, 1), (2.01, 2), (50.0, 2)]
)
def test_latency_sarsa_tells_delays_within_the_target_up_to_twice_and_beyond(
    ratio: float, level: int
) -> None:
    policy = LatencySarsa(ScalingSettings(), delay_target_s=4.0)
    state = policy._state(Situation(utilisation=0.5, delay_s=4.0 * ratio))
    assert state // STATES == level
    assert state % STATES == state_of(0.5)


@pytest.mark.parametrize(
    ("utilisation", "ratio", "reward"),
    [(0.6, 0.5, 1.0), (0.3, 1.0, 0.5), (0.9, 1.0, 0.5), (0.6, 2.0, 0.0), (0.6, 99.0, -1.0)],
)
def test_latency_sarsa_rewards_where_a_host_stands(
    utilisation: float, ratio: float, reward: float
) -> None:
    policy = LatencySarsa(ScalingSettings(target=0.6), delay_target_s=4.0)
    standing = policy._standing(Situation(utilisation=utilisation, delay_s=4.0 * ratio))
    assert standing == pytest.approx(reward)


def test_latency_sarsa_judges_a_release_by_those_that_remain_once_it_has_settled() -> None:
    policy = LatencySarsa(ScalingSettings(lower=0.4, consecutive=1, grace_s=30.0))
    learned: list[tuple[Choice, float]] = []
    policy._shared.learn = lambda state, choice, reward, value: learned.append((choice, reward))  # type: ignore[assignment, method-assign]
    released_s = next(
        5.0 * k for k in range(60) if policy.decide(view(5.0 * k, a=0.1, b=0.6), NOBODY).wishes
    )
    late = QueryView(name="q", class_name="c", priority=1, operators=("b.op",), delay_s=2.0)
    for after_s in (10.0, 25.0, 30.0, 35.0):
        now = replace(view(released_s + after_s, b=0.9), queries=(late,))
        policy.decide(now, NOBODY)
        judged = [reward for choice, reward in learned if choice is Choice.SCALE_IN]
        assert len(judged) == (after_s >= 30.0), after_s
    target = ScalingSettings().target
    assert judged[0] == pytest.approx(1.0 - (0.9 - target) / target - 1.0)


@pytest.mark.parametrize(("mean", "relieves"), [(0.8, False), (0.81, True)])
def test_global_thresholds_take_a_mean_at_the_threshold_as_it_is(
    mean: float, relieves: bool
) -> None:
    policy = GlobalThresholds(ScalingSettings(consecutive=1, upper=0.8))
    assert bool(policy.decide(view(0.0, a=mean, b=mean), NOBODY).wishes) is relieves


@pytest.mark.parametrize(
    "wrong", [{"lower": 0.7}, {"upper": 0.5}, {"consecutive": 0}, {"grace_s": -1.0}]
)
def test_settings_that_make_no_sense_are_refused_in_one_line(wrong: dict[str, float]) -> None:
    with pytest.raises(SpillwayError, match="must be"):
        ScalingSettings(**wrong)  # type: ignore[arg-type]


def test_control_has_a_saturated_host_relieved_of_what_is_wanted_of_it_not_of_what_it_uses() -> (
    None
):
    op = OperatorView(
        name="a.op", queries=("q",), use=Resources(cpu_cores=1.0), true_rate_per_s=1000.0
    )
    host = HostView(name="a", capacity=Resources(cpu_cores=1.0), operators=(op,))
    query = QueryView(
        name="q", class_name="gold", priority=1, operators=("a.op",), offered_rate_per_s=3000.0
    )
    wishes = Control(ScalingSettings()).decide(
        ClusterView(time_s=0.0, hosts=(host,), queries=(query,)), NOBODY
    )
    assert wishes.demand_cores == pytest.approx({"a.op": 3.0})

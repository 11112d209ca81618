"""Wishes made into actions, and what came of the actions."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillway.cluster.actions import ExpectedEffect, MoveOperator, Shed, StartNode, StopNode
from spillway.cluster.prices import Prices
from spillway.cluster.scaling.bridge import Bridge
from spillway.cluster.scaling.expectations import Expectations
from spillway.cluster.scaling.plan import _template, plan
from spillway.cluster.scaling.policy import Release, Relieve, ScalingSettings, Wishes
from spillway.cluster.scaling.scaler import Scaler
from spillway.cluster.views import ClusterView, HostView, OperatorView, QueryView, Resources
from spillway.errors import SpillwayError

CORE = Resources(cpu_cores=1.0)
SETTINGS = ScalingSettings()


def view(*hosts: tuple[str, tuple[float, ...]], time_s: float = 0.0) -> ClusterView:
    def host(name: str, loads: tuple[float, ...]) -> HostView:
        operators = tuple(
            OperatorView(name=f"{name}.{i}", queries=("q",), use=Resources(cpu_cores=load))
            for i, load in enumerate(loads)
        )
        return HostView(name=name, capacity=CORE, operators=operators)

    found = tuple(host(*one) for one in hosts)
    return ClusterView(time_s=time_s, hosts=found, host_template=CORE)


def relieve(host: str) -> Relieve:
    return Relieve(host=host, to_utilisation=0.6, reason="too full")


def release(host: str) -> Release:
    return Release(host=host, reason="too idle")


def test_an_overloaded_host_gives_its_excess_to_a_host_with_room() -> None:
    seen = view(("a", (0.3, 0.3, 0.3)), ("b", (0.2,)))
    planned = plan(Wishes(wishes=(relieve("a"),)), seen, SETTINGS, new_nodes=5)
    assert [type(action) for action in planned.actions] == [MoveOperator]
    move = planned.actions[0]
    assert isinstance(move, MoveOperator)
    assert (move.source, move.destination, move.reason) == ("a", "b", "too full")
    assert move.expected.before > 0.8 > move.expected.after


def test_a_node_is_started_when_no_host_has_room() -> None:
    seen = view(("a", (0.3, 0.3, 0.3)), ("b", (0.5,)))
    planned = plan(Wishes(wishes=(relieve("a"),)), seen, SETTINGS, new_nodes=5)
    assert [type(action) for action in planned.actions] == [StartNode, MoveOperator]
    start, move = planned.actions
    assert (start.expected.before, start.expected.after) == (2.0, 3.0)
    assert move.expected.before == pytest.approx(0.9)
    assert move.expected.after < move.expected.before


def test_without_room_and_without_nodes_the_wish_is_refused() -> None:
    seen = view(("a", (0.3, 0.3, 0.3)), ("b", (0.5,)))
    planned = plan(Wishes(wishes=(relieve("a"),)), seen, SETTINGS, new_nodes=0)
    assert not planned.actions
    assert set(planned.refused) == {"a"}


def test_a_release_that_does_not_find_room_for_all_is_cancelled_as_a_whole() -> None:
    seen = view(("a", (0.1, 0.1)), ("b", (0.45,)))
    planned = plan(Wishes(wishes=(release("a"),)), seen, SETTINGS, new_nodes=5)
    assert not planned.actions
    assert "no room for 1" in planned.refused["a"]


def test_the_last_host_is_not_released() -> None:
    planned = plan(Wishes(wishes=(release("a"),)), view(("a", (0.1,))), SETTINGS, new_nodes=5)
    assert not planned.actions
    assert "must remain" in planned.refused["a"]


def test_two_idle_hosts_do_not_move_into_each_other() -> None:
    seen = view(("a", (0.1,)), ("b", (0.2,)))
    planned = plan(Wishes(wishes=(release("a"), release("b"))), seen, SETTINGS, new_nodes=5)
    stopped = [action.node for action in planned.actions if isinstance(action, StopNode)]
    assert stopped == ["a"]


def test_an_operator_above_the_target_gets_a_node_of_its_own() -> None:
    seen = view(("a", (0.9, 0.2)))
    demand = {"a.0": 0.9, "a.1": 0.2}
    wishes = Wishes(wishes=(relieve("a"),), demand_cores=demand)
    planned = plan(wishes, seen, SETTINGS, new_nodes=5)
    assert [type(action) for action in planned.actions] == [StartNode, MoveOperator]


loads = st.lists(st.floats(0.01, 0.5), min_size=0, max_size=6).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(loads, min_size=1, max_size=6), st.randoms(), st.integers(0, 3))
def test_no_plan_strands_or_doubles_an_operator(
    hosts: list[tuple[float, ...]], random: object, new_nodes: int
) -> None:
    seen = view(*((f"h{i}", some) for i, some in enumerate(hosts)))
    kinds = [random.choice((None, relieve, release)) for _ in hosts]  # type: ignore[attr-defined]
    wishes = tuple(kind(f"h{i}") for i, kind in enumerate(kinds) if kind is not None)
    planned = plan(Wishes(wishes=wishes), seen, SETTINGS, new_nodes)
    moves = [action for action in planned.actions if isinstance(action, MoveOperator)]
    started = {action.node for action in planned.actions if isinstance(action, StartNode)}
    stopped = {action.node for action in planned.actions if isinstance(action, StopNode)}
    assert len({move.operator for move in moves}) == len(moves)
    assert len(started) <= new_nodes
    place = dict(seen.host_of)
    for move in moves:
        assert place[move.operator] == move.source
        place[move.operator] = move.destination
    assert set(place.values()) <= ({host.name for host in seen.hosts} | started) - stopped
    assert len(stopped) < len(seen.hosts)


def effect(before: float = 0.9, after: float = 0.6) -> ExpectedEffect:
    return ExpectedEffect(
        quantity="utilisation", subject="a", before=before, after=after, within_s=30.0
    )


def move(expected: ExpectedEffect) -> MoveOperator:
    return MoveOperator(operator="b.0", source="a", destination="b", reason="", expected=expected)


def test_an_effect_is_checked_once_the_move_is_done_and_has_settled() -> None:
    expectations = Expectations()
    expectations.record([move(effect())], now_s=0.0)
    assert not expectations.check(view(("a", (0.9,)), time_s=5.0))
    done = (("a", (0.6,)), ("b", (0.3,)))
    assert not expectations.check(view(*done, time_s=10.0))
    (outcome,) = expectations.check(view(*done, time_s=40.0))
    assert outcome.helped
    assert outcome.achieved == 1.0


def test_an_action_that_did_not_help_is_not_repeated_in_that_situation() -> None:
    expectations = Expectations()
    expectations.record([move(effect())], now_s=0.0)
    for time_s in (5.0, 40.0):
        expectations.check(view(("a", (0.89,)), ("b", (0.3,)), time_s=time_s))
    assert expectations.unhelpful("a", 0.9)
    assert not expectations.unhelpful("a", 0.75)
    expectations.check(view(("a", (0.89,)), time_s=400.0))
    assert not expectations.unhelpful("a", 0.9), "forgotten: the cluster around it has changed"


def test_a_host_that_works_off_its_backlog_is_not_judged_yet() -> None:
    expectations = Expectations()
    expectations.record([move(effect(before=1.0))], now_s=0.0)
    draining = (("a", (1.0,)), ("b", (0.3,)))
    for time_s in (5.0, 40.0, 80.0):
        assert not expectations.check(view(*draining, time_s=time_s))
    (outcome,) = expectations.check(view(("a", (0.6,)), ("b", (0.3,)), time_s=85.0))
    assert outcome.helped


class AlwaysRelieve:
    def decide(self, view: ClusterView, refused: frozenset[str]) -> Wishes:
        return Wishes(wishes=(relieve("a"),))


def test_the_scaler_drops_a_wish_that_has_failed_before() -> None:
    scaler = Scaler(AlwaysRelieve(), SETTINGS, learn_from_failure=True)
    crowded = view(("a", (0.3, 0.3, 0.3)), ("b", (0.2,)))
    (first,) = scaler.tick(crowded)
    assert isinstance(first, MoveOperator)
    arrived = OperatorView(name=first.operator, queries=("q",), use=Resources(cpu_cores=0.1))
    host_b = replace(crowded.hosts[1], operators=(*crowded.hosts[1].operators, arrived))
    regrown = replace(crowded.hosts[0], operators=(replace(arrived, name="x", use=CORE * 0.9),))
    after = replace(crowded, hosts=(regrown, host_b), time_s=5.0)
    scaler.expectations.check(after)
    assert not scaler.tick(replace(after, time_s=40.0))


def loaded(rate_per_s: float, keep: float, time_s: float) -> ClusterView:
    operator = OperatorView(name="o", queries=("q",), use=CORE, true_rate_per_s=1000.0)
    host = HostView(name="a", capacity=CORE, operators=(operator,))
    query = QueryView(
        name="q",
        class_name="c",
        priority=1,
        operators=("o",),
        offered_rate_per_s=rate_per_s,
        keep_fraction=keep,
    )
    return ClusterView(time_s=time_s, hosts=(host,), queries=(query,))


def test_the_bridge_sheds_down_to_its_ceiling_and_stops_when_the_load_fits() -> None:
    bridge = Bridge(Prices(per_million_tuples=1.0, per_node_hour=1.0), ceiling=0.95)
    (shed,) = bridge.shed(loaded(1900.0, 1.0, 0.0))
    assert isinstance(shed, Shed)
    assert shed.keep_fraction == 0.5
    assert (shed.expected.before, shed.expected.after) == (1.0, 0.95)
    (open_again,) = bridge.shed(loaded(500.0, 0.5, 5.0))
    assert open_again.keep_fraction == 1.0
    assert not bridge.shed(loaded(500.0, 1.0, 10.0))
    view = loaded(1900.0, 1.0, 15.0)
    half = replace(view.hosts[0].operators[0], use=CORE * 0.5)
    (early,) = bridge.shed(replace(view, hosts=(replace(view.hosts[0], operators=(half,)),)))
    assert early.expected.after == 0.5, "nobody becomes busier by shedding"


def test_a_node_may_start_once_shedding_has_cost_as_much() -> None:
    prices = Prices(per_million_tuples=1000.0, per_node_hour=6.0, least_node_s=600.0)
    bridge = Bridge(prices)
    bridge.shed(loaded(2000.0, 0.5, 0.0))
    for k in range(1, 3):  # 1,000 tuples per second: 1.0 a second; a node costs 1.0
        assert bridge.may_start == (k - 1)
        bridge.shed(loaded(2000.0, 0.5, float(k)))
    bridge.started(2)
    assert bridge.may_start == 0


def test_a_new_node_is_as_large_as_the_template_or_else_as_the_nodes_that_are_there() -> None:
    seen = replace(view(("a", (0.3,))), host_template=None)
    assert _template(replace(seen, host_template=CORE * 4.0)) == CORE * 4.0
    assert _template(seen) == seen.hosts[0].capacity
    with pytest.raises(SpillwayError, match="a new node has no size"):
        _template(replace(seen, hosts=()))

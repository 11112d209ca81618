"""What a coordinator must not do: buy in vain, hold for ever, thrash, hang, or take all day."""

import sys
from dataclasses import replace
from typing import Any

import pytest
from paper_cluster import ONE, QUICK, Cluster, moves, run

from spillway.cluster.actions import MoveQuery, StartNode, StopNode
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.coordinator.directive import CoordinatorSettings, Directive
from spillway.cluster.prices import Prices
from spillway.cluster.views import (
    ClassView,
    ClusterView,
    HostView,
    OperatorView,
    QueryView,
    Resources,
)


def starts(directives: list[Directive]) -> list[StartNode]:
    return [a for d in directives for a in d.actions if isinstance(a, StartNode)]


def stops(directives: list[Directive]) -> list[str]:
    return [a.node for d in directives for a in d.actions if isinstance(a, StopNode)]


def test_a_query_that_fits_nowhere_buys_no_node() -> None:
    cluster = Cluster("a").add("heavy", "a", 1.3)
    directives = run(cluster, Coordinator(replace(QUICK, max_nodes=50)), 20)
    assert not any(d.actions for d in directives)
    assert any("left to shed" in w.reason for w in directives[-1].withheld)


def test_others_leave_a_query_that_fills_a_node_by_itself() -> None:
    cluster = Cluster("a", "b").add("heavy", "a", 1.3).add("light", "a", 0.2).add("r", "b", 0.4)
    directives = run(cluster, Coordinator(QUICK), 10)
    assert [(m.query, m.destination) for m in moves(directives)] == [("light", "b")]
    assert not starts(directives)


def test_of_two_heavy_queries_one_gets_a_node_of_its_own() -> None:
    cluster = Cluster("a").add("one", "a", 0.95).add("two", "a", 1.2)
    directives = run(cluster, Coordinator(replace(QUICK, max_nodes=50)), 20)
    assert len(starts(directives)) == 1
    assert [m.query for m in moves(directives)] == ["one"]


def test_idle_nodes_are_released_while_a_hopeless_one_is_overloaded() -> None:
    cluster = Cluster("a", "b", "c").add("heavy", "a", 1.5)
    cluster.add("q1", "b", 0.3).add("q2", "c", 0.1)
    assert stops(run(cluster, Coordinator(QUICK), 8)) == ["c"]


def test_an_idle_node_stays_while_a_fresh_overload_may_need_it() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.3).add("q2", "b", 0.1)
    coordinator = Coordinator(QUICK)
    run(cluster, coordinator, 1)
    cluster.add("q3", "a", 0.65)
    assert not stops(run(cluster, coordinator, 1))
    assert [m.destination for m in moves(run(cluster, coordinator, 3))] == ["b"]


def test_where_the_highest_class_overloads_a_node_it_leaves_first() -> None:
    cluster = Cluster("a", "b").add("gold-1", "a", 0.5, priority=6).add("bronze", "a", 0.1)
    cluster.add("gold-2", "a", 0.4, priority=6).add("silver", "b", 0.1, priority=3)
    (move, *_) = moves(run(cluster, Coordinator(replace(QUICK, lower=0.01)), 3))
    assert (move.query, move.destination) == ("gold-2", "b")


def test_a_node_is_not_released_for_a_load_that_was_higher_lately() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.7).add("q2", "b", 0.7)
    coordinator = Coordinator(replace(QUICK, hold_s=600.0))
    run(cluster, coordinator, 5)
    for name in ("q1", "q2"):
        cluster.queries[name] = replace(cluster.queries[name], offered_rate_per_s=200.0)
    assert not stops(run(cluster, coordinator, 50))  # 500 s of it
    assert stops(run(cluster, coordinator, 30))


def test_prices_decide_whether_a_node_is_started() -> None:
    dear = Prices(per_million_tuples=0.0, per_node_hour=1.0, by_class={"gold": 1.0})
    for shed_per_s, bought in ((100.0, False), (1000.0, True)):  # 0.36 and 3.6 an hour
        cluster = Cluster("a").add("q1", "a", 0.6).add("q2", "a", 0.6)
        gold = ClassView(name="gold", priority=6, quota=1.0, load=1.2, shed_tuples_per_s=shed_per_s)
        cluster.classes["a"] = (gold,)
        settings = replace(QUICK, prices=dear, hold_s=600.0)
        directives = run(cluster, Coordinator(settings), 60)  # ten minutes
        assert bool(starts(directives)) == bought
        assert any("prices: shedding has cost" in w.reason for d in directives for w in d.withheld)


def test_a_move_that_hangs_is_given_up_and_the_others_go_on() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.5).add("q2", "a", 0.5).add("q3", "a", 0.5)
    coordinator = Coordinator(replace(QUICK, max_moves=1, give_up_s=50.0))
    directives = [coordinator.decide(cluster.view()) for _ in range(2)]
    (first,) = moves(directives)
    hung = replace(cluster.queries[first.query], migrating=True)
    cluster.queries[first.query] = hung
    directives = [coordinator.decide(cluster.view()) for _ in range(8)]
    assert any("is still on the move" in note for d in directives for note in d.noticed)
    assert {m.query for m in moves(directives)} == {"q2"}


def test_a_node_whose_moves_hang_is_open_again() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.3).add("q2", "b", 0.1)
    coordinator = Coordinator(replace(QUICK, give_up_s=50.0, cooldown_s=0.0))
    asked = [coordinator.decide(cluster.view()) for _ in range(3)]
    assert [m.source for m in moves(asked)] == ["b"]
    cluster.queries["q1"] = replace(cluster.queries["q1"], offered_rate_per_s=800.0)
    cluster.queries["q2"] = replace(cluster.queries["q2"], migrating=True)
    for _ in range(7):
        coordinator.decide(cluster.view())
    cluster.add("q3", "a", 0.4)
    assert "b" in [m.destination for m in moves([coordinator.decide(cluster.view()) for _ in "12"])]


def test_a_missing_report_is_no_missing_node() -> None:
    cluster = Cluster("node-1").add("q1", "node-1", 0.6).add("q2", "node-1", 0.6)
    coordinator = Coordinator(replace(QUICK, max_nodes=5))
    assert [s.node for s in starts(run(cluster, coordinator, 4))] == ["node-2"]
    assert cluster.operators["q1.op"][0] == "node-2"
    cluster.add("q3", "node-1", 0.6)
    silent = cluster.nodes.pop("node-2")
    asked = run(cluster, coordinator, 3)
    cluster.nodes["node-2"] = silent
    assert [s.node for s in starts(asked)] == ["node-3"]


def test_a_silent_node_counts_against_the_budget_until_it_is_given_up() -> None:
    cluster = Cluster("node-1", "node-2").add("q1", "node-1", 0.6).add("q2", "node-1", 0.6)
    cluster.add("q3", "node-2", 0.7)
    coordinator = Coordinator(replace(QUICK, max_nodes=2, give_up_s=50.0))
    coordinator.decide(cluster.view())
    del cluster.nodes["node-2"]
    directives = [coordinator.decide(cluster.view()) for _ in range(8)]
    assert not starts(directives[:5])
    assert [s.node for s in starts(directives)] == ["node-3"]
    assert any("node-2 has not reported" in note for d in directives for note in d.noticed)


def overloaded(nodes: int, time_s: float) -> ClusterView:
    """Every node at 1.2, four queries each, one stream parsed for all of them."""
    hosts, queries = [], []
    for n in range(nodes):
        names = [f"q{n}.{k}" for k in range(4)]
        parse = OperatorView(
            name=f"parse-{n}",
            queries=tuple(names),
            use=Resources(cpu_cores=0.01),
            true_rate_per_s=1e5,
            signature=f"parse-{n % 40}",
        )
        own = [
            OperatorView(
                name=f"{name}.op",
                queries=(name,),
                use=Resources(cpu_cores=0.25),
                upstream=(parse.name,),
                state_mb=float(k % 2),
                true_rate_per_s=1000.0,
            )
            for k, name in enumerate(names)
        ]
        classes = tuple(
            ClassView(name=f"c{p}", priority=p, quota=0.0, load=0.4, shed_tuples_per_s=50.0)
            for p in (6, 3, 1)
        )
        hosts.append(
            HostView(name=f"node-{n + 1}", capacity=ONE, operators=(parse, *own), classes=classes)
        )
        queries += [
            QueryView(
                name=name,
                class_name=f"c{priority}",
                priority=priority,
                operators=(parse.name, f"{name}.op"),
                offered_rate_per_s=300.0,
            )
            for name, priority in zip(names, (6, 3, 1, 1), strict=True)
        ]
    return ClusterView(time_s=time_s, hosts=tuple(hosts), queries=tuple(queries), host_template=ONE)


def calls(nodes: int) -> int:
    """Calls made by one decision that asks for moves, starts and quotas: work, not time."""
    coordinator = Coordinator(CoordinatorSettings(patience_reports=2, max_nodes=2 * nodes))
    coordinator.decide(overloaded(nodes, 0.0))
    view, made = overloaded(nodes, 60.0), 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        directive = coordinator.decide(view)
    finally:
        sys.setprofile(None)
    assert any(isinstance(a, StartNode) for a in directive.actions)
    return made


def test_deciding_takes_work_in_proportion_to_the_cluster() -> None:
    assert calls(1600) < 4.5 * calls(400)


@pytest.mark.parametrize("period_s", [1200, 1800, 2400, 3600])
def test_a_load_that_alternates_makes_nothing_thrash(period_s: int) -> None:
    cluster = Cluster("a", "b", "c", "d")
    for i in range(12):
        cluster.add(f"q{i}", "abcd"[i % 4], 0.25)
    coordinator = Coordinator(CoordinatorSettings(max_nodes=8))
    directives, over = [], 0
    for step in range(6 * 30):  # 6 h, a report every two minutes
        cluster.time_s += 110.0
        rate = 250.0 if step * 120 % period_s < period_s // 2 else 50.0
        for name, query in cluster.queries.items():
            cluster.queries[name] = replace(query, offered_rate_per_s=rate)
        directives += run(cluster, coordinator, 1)
        loads = dict.fromkeys(cluster.nodes, 0.0)
        for node, operator in cluster.operators.values():
            loads[node] += rate / operator.true_rate_per_s
        over += any(load > 1.0 for load in loads.values())
    assert over == 0
    assert not starts(directives)
    assert not stops(directives)
    back = [m for m in moves(directives) if isinstance(m, MoveQuery)]
    assert len(back) <= 4

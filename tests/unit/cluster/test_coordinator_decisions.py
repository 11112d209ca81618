"""Reports in, actions out: what the coordinator does and what it withholds."""

from dataclasses import replace

import numpy as np
from paper_cluster import QUICK, Cluster, moves, run

from spillway.cluster.actions import Decouple, MoveQuery, SetQuota, StartNode, StopNode
from spillway.cluster.coordinator.coordinator import Coordinator
from spillway.cluster.views import ClassView


def test_a_brief_spike_moves_nothing() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.7).add("q2", "a", 0.5).add("q3", "b", 0.6)
    coordinator = Coordinator(QUICK)
    first = run(cluster, coordinator, 1)
    cluster.queries["q2"] = replace(cluster.queries["q2"], offered_rate_per_s=100.0)
    assert not moves(first + run(cluster, coordinator, 3))


def test_a_lasting_overload_moves_the_least_important_query() -> None:
    cluster = Cluster("a", "b").add("low", "a", 0.5, priority=1).add("high", "a", 0.5, priority=6)
    cluster.add("other", "b", 0.1)
    directives = run(cluster, Coordinator(QUICK), 4)
    assert [(m.query, m.destination) for m in moves(directives)] == [("low", "b")]
    assert "above 0.9" in moves(directives)[0].reason
    expected = moves(directives)[0].expected
    assert (expected.subject, round(expected.before, 2), round(expected.after, 2)) == (
        "a",
        1.0,
        0.5,
    )


def test_of_equal_priorities_the_stateless_query_moves_first() -> None:
    cluster = Cluster("a", "b").add("heavy-state", "a", 0.5, state_mb=50.0)
    cluster.add("no-state", "a", 0.5).add("other", "b", 0.1)
    assert [m.query for m in moves(run(cluster, Coordinator(QUICK), 3))] == ["no-state"]


def test_a_destination_that_shares_operators_is_preferred() -> None:
    cluster = Cluster("a", "b", "c").add("q1", "a", 0.5, signature="parse trades")
    cluster.add("q2", "a", 0.6, priority=6).add("full", "b", 0.2)
    cluster.add("twin", "c", 0.05, signature="parse trades")
    (move,) = moves(run(cluster, Coordinator(replace(QUICK, lower=0.01)), 3))
    assert (move.query, move.destination) == ("q1", "c")
    assert "already runs" in move.reason


def test_important_queries_are_spread_so_that_others_can_shed_in_their_place() -> None:
    cluster = Cluster("a", "b", "c").add("low", "a", 0.05).add("gold-1", "a", 0.4, priority=6)
    cluster.add("gold-2", "a", 0.5, priority=6).add("gold-3", "b", 0.3, priority=6)
    cluster.add("silver", "c", 0.2, priority=3)
    settings = replace(QUICK, lower=0.01)
    chosen = {m.query: m.destination for m in moves(run(cluster, Coordinator(settings), 2))}
    assert chosen == {"gold-1": "c"}  # b is fuller, but with gold


def test_shared_parts_are_decoupled_before_the_move() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.4).add("q2", "a", 0.4, priority=6)
    cluster.share("scan", "a", 0.2, "q1", "q2").add("other", "b", 0.05)
    directives = run(cluster, Coordinator(replace(QUICK, lower=0.01)), 2)
    decouple, move = directives[-1].actions
    assert isinstance(decouple, Decouple)
    assert isinstance(move, MoveQuery)
    assert (decouple.operator, decouple.query, decouple.node) == ("scan", "q1", "a")
    assert "1 other queries still use it" in decouple.reason


def test_what_finds_no_place_starts_a_node_and_moves_when_it_runs() -> None:
    cluster = Cluster("a").add("q1", "a", 0.6).add("q2", "a", 0.6)
    directives = run(cluster, Coordinator(QUICK), 4)
    starts = [a for d in directives for a in d.actions if isinstance(a, StartNode)]
    assert [s.node for s in starts] == ["node-1"]
    assert starts[0].expected.after == 2.0
    assert [m.destination for m in moves(directives)] == ["node-1"]


def test_a_node_that_is_still_starting_is_not_asked_for_again() -> None:
    cluster = Cluster("a").add("q1", "a", 0.6).add("q2", "a", 0.6)
    coordinator = Coordinator(QUICK)
    asked = [coordinator.decide(cluster.view()) for _ in range(5)]
    assert sum(isinstance(a, StartNode) for d in asked for a in d.actions) == 1


def test_the_budget_vetoes_a_start_and_says_so() -> None:
    cluster = Cluster("a").add("q1", "a", 0.6).add("q2", "a", 0.6)
    directives = run(cluster, Coordinator(replace(QUICK, max_nodes=1)), 3)
    assert not any(d.actions for d in directives)
    vetoed = [w for w in directives[-1].withheld if isinstance(w.action, StartNode)]
    assert vetoed[0].reason == "budget: 1 of 1 nodes are in use"


def test_without_budget_an_important_query_displaces_less_important_ones_elsewhere() -> None:
    cluster = Cluster("a", "b").add("gold-1", "a", 0.7, priority=6)
    cluster.add("gold-2", "a", 0.6, priority=6).add("bronze", "b", 0.9, priority=1)
    gold = ClassView(name="gold", priority=6, quota=1.0, load=1.3, shed_tuples_per_s=300.0)
    cluster.classes["a"] = (gold,)
    directives = run(cluster, Coordinator(replace(QUICK, max_nodes=2)), 2)
    (move,) = moves(directives)
    assert (move.source, move.destination) == ("a", "b")
    assert "at the cost of lower priorities" in move.reason


def test_an_idle_node_is_emptied_and_then_released() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.3).add("q2", "b", 0.1)
    directives = run(cluster, Coordinator(QUICK), 5)
    assert [(m.query, m.destination) for m in moves(directives)] == [("q2", "a")]
    assert [a.node for d in directives for a in d.actions if isinstance(a, StopNode)] == ["b"]
    assert list(cluster.nodes) == ["a"]


def test_an_idle_node_stays_when_its_queries_find_no_room() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.7).add("q2", "b", 0.4)
    directives = run(cluster, Coordinator(QUICK), 4)
    assert not any(d.actions for d in directives)
    assert "no room for q2" in directives[-1].withheld[-1].reason


def test_nodes_are_filled_to_the_target_and_not_beyond() -> None:
    cluster = Cluster("a", "b", "c")
    for i in range(12):
        cluster.add(f"q{i}", "abc"[i % 3], 0.1)
    run(cluster, Coordinator(replace(QUICK, lower=0.5)), 8)
    loads = [host.utilisation for host in cluster.view().hosts]
    assert len(loads) == 2
    assert max(loads) <= QUICK.target + 1e-9


def test_the_minimum_of_nodes_stays() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.1)
    directives = run(cluster, Coordinator(replace(QUICK, min_nodes=2)), 4)
    assert list(cluster.nodes) == ["a", "b"]
    assert any("minimum" in w.reason for w in directives[-1].withheld)


def test_a_query_that_just_moved_stays_during_its_cool_down() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.5).add("q2", "a", 0.6, priority=6)
    cluster.add("q3", "b", 0.2)
    coordinator = Coordinator(QUICK)
    assert [m.query for m in moves(run(cluster, coordinator, 3))] == ["q1"]
    cluster.queries["q3"] = replace(cluster.queries["q3"], offered_rate_per_s=600.0, priority=6)
    soon = run(cluster, coordinator, 3)
    assert "q1" not in [m.query for m in moves(soon)]
    assert any("cool-down: it moved" in w.reason for d in soon for w in d.withheld)


def test_a_query_on_the_move_counts_where_it_goes() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.5).add("q2", "a", 0.5, priority=6)
    cluster.add("other", "b", 0.1)
    coordinator = Coordinator(QUICK)
    asked = [coordinator.decide(cluster.view()) for _ in range(4)]  # nobody carries it out
    assert len(moves(asked)) == 1


def test_an_action_that_never_happens_is_given_up_and_reported() -> None:
    cluster = Cluster("a", "b").add("q1", "a", 0.5).add("q2", "a", 0.5, priority=6)
    cluster.add("other", "b", 0.1)
    coordinator = Coordinator(replace(QUICK, give_up_s=50.0))
    asked = [coordinator.decide(cluster.view()) for _ in range(9)]
    notes = [note for d in asked for note in d.noticed]
    assert notes == ["q1 did not reach b in 50 s"]


def test_quotas_follow_global_priorities_on_a_full_node() -> None:
    cluster = Cluster("a", "b").add("q", "a", 0.5).add("r", "b", 0.6)
    gold = ClassView(name="gold", priority=6, quota=0.6, load=0.9)
    bronze = ClassView(name="bronze", priority=1, quota=0.4, load=0.5)
    cluster.classes["a"] = (gold, bronze)
    directive = Coordinator(QUICK).decide(cluster.view())
    quotas = {a.class_name: a.quota for a in directive.actions if isinstance(a, SetQuota)}
    assert round(quotas["gold"], 3) == 0.9
    assert round(quotas["bronze"], 3) == 0.1


def test_replayed_reports_give_the_same_actions() -> None:
    rng = np.random.default_rng(3)
    views, cluster, coordinator = [], Cluster("a", "b", "c"), Coordinator(QUICK)
    for i in range(12):
        cluster.add(f"q{i}", "abc"[i % 3], 0.1, priority=int(rng.choice([1, 3, 6])))
    for _ in range(40):
        for name, query in cluster.queries.items():
            rate = float(np.clip(query.offered_rate_per_s * rng.uniform(0.7, 1.45), 10.0, 600.0))
            cluster.queries[name] = replace(query, offered_rate_per_s=rate)
        views.append(cluster.view())
        cluster.obey(coordinator.decide(views[-1]))
    first, second = Coordinator(QUICK), Coordinator(QUICK)
    answers = [first.decide(view) for view in views]
    assert answers == [second.decide(view) for view in views]
    assert sum(len(a.actions) for a in answers) > 10


def test_every_action_says_why_and_what_it_expects() -> None:
    cluster = Cluster("a").add("q1", "a", 0.6).add("q2", "a", 0.6)
    for directive in run(cluster, Coordinator(QUICK), 6):
        for action in directive.actions:
            assert action.reason
            assert action.expected.within_s > 0.0

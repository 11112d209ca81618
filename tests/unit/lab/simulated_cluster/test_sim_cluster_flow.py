"""The simulated cluster: flow, delay, moves, nodes."""

import numpy as np
import pytest

from spillway.cluster.actions import ExpectedEffect, MoveOperator, Shed, StartNode, StopNode
from spillway.errors import SpillwayError
from spillway_lab.simulated_cluster.cluster import ClusterSettings, SimCluster
from spillway_lab.simulated_cluster.moves import MoveProtocol, PauseAndReplay, UniMiCo
from spillway_lab.simulated_cluster.workload import ClusterWorkload, sector_queries

EFFECT = ExpectedEffect(quantity="hosts", subject="cluster", before=1, after=2, within_s=1.0)


def steady(cores: float, seconds: int = 200, queries: int = 4) -> ClusterWorkload:
    rates = np.full((seconds, 3), 1000.0)
    rng = np.random.default_rng(1)
    return sector_queries(rates, step_s=1.0, queries=queries, mean_cores=cores, rng=rng)


def one_host(workload: ClusterWorkload, protocol: MoveProtocol | None = None) -> SimCluster:
    return SimCluster(workload, ClusterSettings(max_hosts=2, first_fill=100.0), protocol)


def start(node: str) -> StartNode:
    return StartNode(node=node, reason="", expected=EFFECT)


def move(operator: str, source: str = "host-1", destination: str = "host-2") -> MoveOperator:
    return MoveOperator(
        operator=operator, source=source, destination=destination, reason="", expected=EFFECT
    )


def mean_delay_s(cluster: SimCluster) -> float:
    delays = [query.delay_s for query in cluster.observe().queries if query.delay_s is not None]
    return sum(delays) / len(delays)


def test_the_workload_is_scaled_to_the_wanted_cores() -> None:
    assert steady(2.5).demand_cores.sum(axis=(0, 2)).mean() == pytest.approx(2.5)


def test_below_capacity_utilisation_is_the_demand_and_delay_is_small() -> None:
    cluster = one_host(steady(0.7))
    cluster.advance(60.0)
    (host,) = cluster.observe().hosts
    assert host.utilisation == pytest.approx(0.7, abs=1e-6)
    cluster.advance(5.0)
    assert mean_delay_s(cluster) == pytest.approx(3 * 0.010 / 0.3, rel=0.01)


def test_above_capacity_utilisation_saturates_and_delay_grows_with_the_backlog() -> None:
    cluster = one_host(steady(1.5))
    delays = []
    for _ in range(4):
        cluster.advance(30.0)
        view = cluster.observe()
        assert view.hosts[0].utilisation == pytest.approx(1.0, abs=0.02)
        delays.append(max(q.delay_s or 0.0 for q in view.queries))
    growth_s = np.diff(delays)
    assert (growth_s > 4.0).all()


def test_no_tuple_is_lost_or_made_on_the_way() -> None:
    cluster = one_host(steady(1.5, queries=1))
    cluster.advance(50.0)
    view = cluster.observe()
    filtered, aggregate, _ = (view.operators[f"q0.{s}"] for s in ("filter", "aggregate", "sink"))
    cost_s = 1.0 / filtered.true_rate_per_s
    processed = filtered.use.cpu_cores * 50.0 / cost_s
    assert processed + filtered.queued_tuples == pytest.approx(3000.0 * 50.0)
    eaten = aggregate.use.cpu_cores * 50.0 * aggregate.true_rate_per_s
    assert eaten + aggregate.queued_tuples == pytest.approx(processed * filtered.selectivity)


def test_true_rate_and_selectivity_are_what_was_measured() -> None:
    workload = steady(1.5)
    cluster = one_host(workload)
    cluster.advance(30.0)
    seen = cluster.observe().operators["q0.aggregate"]
    assert seen.true_rate_per_s == pytest.approx(1.0 / workload.cost_s[1])
    assert seen.selectivity == pytest.approx(0.1)


def test_a_node_takes_its_time_to_start_and_moves_to_it_wait() -> None:
    cluster = one_host(steady(0.5))
    cluster.advance(5.0)
    cluster.actuate([start("host-2"), move("q0.sink")])
    cluster.advance(5.0)
    view = cluster.observe()
    assert [host.state for host in view.hosts] == ["running", "starting"]
    assert view.host_of["q0.sink"] == "host-1"
    cluster.advance(10.0)
    view = cluster.observe()
    assert view.host_of["q0.sink"] == "host-2"
    assert not view.query("q0").migrating


def two_hosts(protocol: MoveProtocol, cores: float = 0.5) -> SimCluster:
    cluster = one_host(steady(cores), protocol)
    cluster.actuate([start("host-2")])
    cluster.advance(60.0)
    cluster.observe()
    return cluster


def test_a_move_with_state_pauses_and_its_query_alone_waits() -> None:
    slow = PauseAndReplay(handshake_s=8.0)
    cluster = two_hosts(slow)
    cluster.actuate([move("q1.aggregate")])
    cluster.advance(5.0)
    view = cluster.observe()
    delay_s = view.query("q1").delay_s
    assert delay_s is None or delay_s < 0.2
    assert view.operators["q1.aggregate"].use.cpu_cores == 0.0
    assert view.operators["q1.filter"].use.cpu_cores == 0.0, "its predecessor is paused"
    assert view.operators["q1.filter"].queued_tuples > 0.0
    cluster.advance(10.0)
    view = cluster.observe()
    late, other = view.query("q1").delay_s, view.query("q0").delay_s
    assert late is not None
    assert other is not None
    assert late > 2.0 > 0.2 > other


def test_more_state_takes_longer_to_move() -> None:
    protocol = PauseAndReplay()
    assert protocol.duration_s(100.0, 60.0) > protocol.duration_s(1.0, 60.0)
    assert UniMiCo().duration_s(100.0, 60.0) == UniMiCo().duration_s(1.0, 60.0)


def test_a_unimico_move_does_not_pause_but_works_twice_for_a_window() -> None:
    cluster = two_hosts(UniMiCo())
    cluster.actuate([move("q1.aggregate")])
    cluster.advance(3.0)
    view = cluster.observe()
    assert view.query("q1").migrating
    delay_s = view.query("q1").delay_s
    assert delay_s is not None
    assert delay_s < 0.2
    assert view.operators["q1.aggregate"].use.cpu_cores > 0.0


def test_a_drained_node_disappears_and_is_no_longer_paid_for() -> None:
    cluster = two_hosts(PauseAndReplay())
    cluster.actuate([StopNode(node="host-2", reason="", expected=EFFECT)])
    cluster.advance(2.0)
    assert [host.name for host in cluster.observe().hosts] == ["host-1"]
    before = cluster.host_seconds
    cluster.advance(10.0)
    assert cluster.host_seconds - before == pytest.approx(10.0)


def test_shedding_keeps_the_asked_fraction_of_what_is_offered() -> None:
    cluster = one_host(steady(1.5))
    cluster.actuate([Shed(node="host-1", keep_fraction=0.5, reason="", expected=EFFECT)])
    cluster.advance(30.0)
    view = cluster.observe()
    assert view.hosts[0].utilisation == pytest.approx(0.75, abs=1e-6)
    assert all(query.keep_fraction == pytest.approx(0.5) for query in view.queries)


def test_impossible_actions_are_refused_in_one_line() -> None:
    cluster = two_hosts(PauseAndReplay())
    with pytest.raises(SpillwayError, match="does not exist"):
        cluster.actuate([move("q0.sink", destination="nowhere")])
    with pytest.raises(SpillwayError, match="is not on host-2"):
        cluster.actuate([move("q0.sink", source="host-2")])
    with pytest.raises(SpillwayError, match="all 2 hosts are in use"):
        cluster.actuate([start("host-3")])

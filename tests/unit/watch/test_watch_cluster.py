"""A cluster's page: what it says of nodes, queries and moves, and what it lets be changed."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from clusters import PAGE, RATES, WatchedCluster
from virtual import SECRET, TOKENS

from spillway.errors import SpillwayError
from spillway.hosts.cluster.control_log import AwayError
from spillway.journal.entries import Event
from spillway.journal.files import read_journal
from spillway.watch.listening import Address, bound
from spillway.watch.server import WatchServer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[WatchedCluster]:
    made = WatchedCluster(tmp_path)
    yield made
    made.close()


def test_nodes_queries_and_links_are_shown_as_the_control_log_has_them(
    cluster: WatchedCluster,
) -> None:
    now = cluster.placed()
    assert now.cluster is not None
    assert now.cluster.leader == cluster.coordinating.me
    nodes = {node.name: node for node in now.cluster.nodes}
    assert set(nodes) == {"node-1", "node-2"}
    assert {name for node in nodes.values() for name in node.queries} == {*RATES}
    assert nodes["node-1"].watch == PAGE
    for name, node in nodes.items():
        own = [query.load for query in now.queries if query.node == name]
        assert node.load == pytest.approx(sum(own))
    assert {stream.name: stream.written_by for stream in now.streams} == {
        "clicks": None,
        "found": "finds",
    }
    finds = next(query for query in now.queries if query.name == "finds")
    assert finds.writes == "found"
    assert finds.totals.admitted > finds.totals.shed > 0
    assert finds.reason == "what fits in 1 s"
    assert now.ready
    assert [view.name for view in now.classes] == ["gold", "low"]
    assert sum(view.pace.shed_per_s for view in now.classes) > 0.0


def test_a_move_is_shown_until_it_is_done(cluster: WatchedCluster) -> None:
    before = cluster.placed()
    origin = next(query.node for query in before.queries if query.name == "counts")
    assert origin is not None
    there = "node-1" if origin == "node-2" else "node-2"
    cluster.stuck.add(origin)
    cluster.move("counts", there)
    moving = cluster.until(lambda now: now.cluster is not None and now.cluster.moves != ())
    assert moving.cluster is not None
    [move] = moving.cluster.moves
    assert (move.query, move.origin, move.destination) == ("counts", origin, there)
    cluster.stuck.clear()
    done = cluster.until(
        lambda now: any(query.name == "counts" and query.node == there for query in now.queries)
    )
    assert done.cluster is not None
    assert done.cluster.moves == ()
    told = cluster.until(
        lambda now: any(f"counts runs on {there}, before on {origin}" in s.text for s in now.said)
    )
    assert told.said[0].time_s >= told.said[-1].time_s


def test_a_target_is_changed_through_the_leader_and_whoever_asked_is_in_its_journal(
    cluster: WatchedCluster,
) -> None:
    cluster.placed()
    server = WatchServer(cluster.watch, bound(Address(host="127.0.0.1", port=0)), TOKENS)
    server.start()
    try:
        headers = {"Authorization": f"Bearer {SECRET}"}
        with httpx.Client(base_url=server.url, timeout=90.0, headers=headers) as client:
            for wrong in ({"gold.delay": "soon"}, {"iron.delay": "1s"}, {"gold.manager": "none"}):
                refused = client.post("/api/set", json={"gold.priority": 4, **wrong})
                assert refused.status_code == 422
            state = client.get("/api/state").json()
            assert [view["priority"] for view in state["classes"]] == [3, 1]
            assert client.post("/api/set", json={"gold.delay": "p99 2s"}).status_code == 200
            cluster.until(lambda now: now.classes[0].target == "p99 2s")
            assert client.get("/api/state").json()["overrides"][0]["file_value"] == "1s"
            assert client.post("/api/set", json={"gold.delay": None}).status_code == 200
            assert client.post("/api/preview", json={"gold": "2s"}).status_code == 422
            columns = client.get("/api/history?seconds=60").json()["classes"]["gold"]
            assert any(value for value in columns["kept_per_s"])
    finally:
        server.stop()
    cluster.until(lambda now: now.classes[0].target_s == 1.0 and now.overrides == ())
    journal = next((cluster.place.folder / "coordinators").glob("*.jsonl"))
    events = [entry for entry in read_journal(journal) if isinstance(entry, Event)]
    asked = [event.fields["request"] for event in events if event.kind == "asked"]
    assert asked[0].startswith("set gold.delay p99 2s by ada")


def test_metrics_count_nodes_and_leave_tuples_to_them(cluster: WatchedCluster) -> None:
    cluster.placed()
    text = cluster.watch.metrics_text().decode()
    assert 'spillway_node_running{node="node-1"} 1.0' in text
    assert "spillway_controller_up 1.0" in text
    assert 'spillway_query_placed{class="gold",query="finds"} 1.0' in text
    assert "spillway_rows" not in text


def test_a_control_log_that_is_away_is_said_and_what_was_known_stays(
    cluster: WatchedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.placed()

    def away(now_s: float) -> None:
        raise AwayError("the control log does not answer")

    monkeypatch.setattr(cluster.watch._reading, "read_on", away)
    now = cluster.watch.look()
    assert now.cluster is not None
    assert now.cluster.away == "the control log does not answer"
    assert len(now.cluster.nodes) == 2


def test_what_only_one_driver_has_is_refused_in_a_line(cluster: WatchedCluster) -> None:
    with pytest.raises(SpillwayError, match="on that node's page"):
        cluster.watch.preview({"gold": "1s"})
    with pytest.raises(SpillwayError, match="no template"):
        cluster.watch.change_instances("finds", [], [], "ada")
    assert cluster.watch.instances() == {}

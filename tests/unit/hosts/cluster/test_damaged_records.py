"""A record that somebody damaged or wrote by hand ends neither a node nor a coordinator."""

import threading
from pathlib import Path
from typing import Any

import pytest
from toys import CLUSTER, MemoryLog

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.cluster.bodies import ASSIGNMENTS, REPORTS
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.coordinating import Coordinating
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.messages import LEADER, NODE, QUERY, Assignment, Leadership
from spillway.hosts.cluster.node_process import run_node
from spillway.hosts.cluster.opening import place_of
from spillway.hosts.cluster.records import Record

QUERY_BODY = {"sql": "SELECT * FROM ticks", "sink": {"type": "noop"}}
RUNS = Assignment(query=QUERY_BODY, state="runs", node="node-1", life="l1", epoch=4)
FLOW = Flow.model_validate(
    {
        "streams": {"ticks": {"source": "synthetic", "options": {"rate": 10}}},
        "classes": {"default": {"delay": "1s"}},
        "queries": {"q": QUERY_BODY},
        "cluster": {"launcher": "none"},
    }
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(key: str, body: Any, cluster: str = CLUSTER) -> Record:
    return Record(cluster=cluster, key=key, epoch=1, writer="somebody", body=body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": QUERY_BODY, "epoch": "4"},
        {"query": QUERY_BODY, "state": "sleeps"},
        {"query": QUERY_BODY, "next": []},
        {"query": {"sql": 7}},
        {"query": {}},
    ],
)
def test_what_a_key_said_before_goes_on_to_hold(body: dict[str, Any]) -> None:
    log = MemoryLog([record(QUERY + "q", to_json(Assignment, RUNS))])
    known, duties = Latest(log, ASSIGNMENTS), Duties(node="node-1")
    known.read_on()
    log.append(record(QUERY + "q", body))
    [told] = known.read_on().skipped
    assert "record 1: 'query/q' of 'somebody' is damaged" in told
    assert from_json(Assignment, known.by_key[QUERY + "q"].record.body or {}) == RUNS
    duties.read(known, "l1")
    assert duties.queries["q"].epoch == 4


def test_each_log_has_bodies_of_its_own_and_other_keys_pass() -> None:
    order = record(NODE + "node-1", {"state": "stops"})
    for check, passes in ((ASSIGNMENTS, True), (REPORTS, False)):
        records = [order, record("later/x", {"a": 1}), record(NODE + "n", None)]
        known = Latest(MemoryLog(records), check)
        known.read_on()
        assert (NODE + "node-1" in known.by_key) == passes
        assert "later/x" in known.by_key


def test_a_node_without_a_core_is_no_node() -> None:
    host: dict[str, Any] = {"name": "n"}
    body = {"life": "l", "lease_s": 9.0, "state": "running", "applied": 1, "running": {}}
    for cores, passes in ((0.0, False), (-1.0, False), (0.5, True)):
        host["capacity"] = {"cpu_cores": cores}
        known = Latest(MemoryLog([record(NODE + "n", {**body, "host": host})]), REPORTS)
        assert (not known.read_on().skipped) is passes


def test_a_coordinator_goes_on_and_tells_it(tmp_path: Path) -> None:
    said: list[str] = []
    place = place_of(tmp_path / "toys.yaml", FLOW)
    place.assignments().append(record(LEADER, {"leader": 3}))
    place.assignments().append(record(QUERY + "q", {"query": None}))
    place.reports().append(record(NODE + "node-1", {"life": []}))
    coordinating = Coordinating(place, said.append)
    for _ in range(3):
        coordinating.step()
    assert coordinating.leads
    assert sum("is damaged" in line for line in said) == 3
    log = Latest(place.assignments(), ASSIGNMENTS)
    log.read_on()
    assert from_json(Leadership, log.by_key[LEADER].record.body or {}).leader == coordinating.me


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a b", "x" * 65, "\0", "-x", "é"])
def test_the_name_of_a_node_makes_no_path(name: str, tmp_path: Path) -> None:
    place = place_of(tmp_path / "toys.yaml", FLOW)
    with pytest.raises(SpillwayError, match="--name is"):
        run_node(place, name, print, threading.Event())
    assert list(tmp_path.iterdir()) == []

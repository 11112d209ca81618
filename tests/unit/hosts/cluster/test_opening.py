"""A cluster file that cannot work is refused in one line, before anything starts."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.cluster.launching import command_of, launcher_of
from spillway.hosts.cluster.opening import place_of

FLOW: dict[str, Any] = {
    "streams": {"ticks": {"source": "synthetic", "options": {"rate": 10}}},
    "classes": {"default": {"delay": "1s"}},
    "queries": {"q": {"sql": "SELECT * FROM ticks", "sink": {"type": "noop"}}},
}


def flow(cluster: dict[str, Any] | None, **changes: Any) -> Flow:
    return Flow.model_validate({**FLOW, **changes, "cluster": cluster})


def test_a_flow_without_a_cluster_is_for_one_node(tmp_path: Path) -> None:
    with pytest.raises(SpillwayError, match="has no section cluster"):
        place_of(tmp_path / "flow.yaml", flow(None))


def test_folder_and_control_log_are_seen_from_the_file(tmp_path: Path) -> None:
    place = place_of(tmp_path / "flow.yaml", flow({"folder": "shared"}))
    assert (place.name, place.folder) == ("flow", tmp_path / "shared")
    place.reports().read(0)
    assert (tmp_path / "shared" / "control" / "reports").is_dir()


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"control": {"type": "etcd"}}, "unknown control log 'etcd'"),
        ({"control": {"type": "kafka"}}, "control.brokers is missing"),
        ({"control": {"type": "folder", "brokers": "x"}}, "control.brokers: a folder takes"),
        ({"launcher": "command", "command": "ssh {host}"}, "it may have {node} and {file}"),
        ({"launcher": "command", "command": "ssh {node.x}"}, "it may have {node} and {file}"),
        ({"launcher": "command", "command": ""}, "it names no program"),
        ({"launcher": "command", "command": "ssh 'box"}, "No closing quotation"),
    ],
)
def test_what_names_no_place_is_refused(cluster: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(SpillwayError) as refused:
        place_of(tmp_path / "flow.yaml", flow(cluster))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"fewest": 3, "most": 2}, "most is 2: it must be at least fewest, 3"),
        ({"lower": 0.8}, "must ascend"),
        ({"launcher": "command"}, "launcher command and a command go together"),
        ({"launcher": "standalone"}, "needs a master"),
        ({"lease": "soon"}, "it must be a positive number with a unit"),
    ],
)
def test_what_does_not_add_up_is_refused(cluster: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        flow(cluster)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"queries": {"q": {"sql": "SELECT 1", "sink": {"type": "memory"}}}},
            "queries.q.sink.type",
        ),
        (
            {"queries": {"q": {"template": "SELECT :a", "instances": [{"a": 1}]}}},
            "queries.q.template",
        ),
        (
            {"streams": {**FLOW["streams"], "few": {"from_sql": "SELECT * FROM ticks"}}},
            "streams.few.from_sql",
        ),
    ],
)
def test_what_cannot_move_yet_is_refused_with_its_place(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SpillwayError, match=said):
        place_of(tmp_path / "flow.yaml", flow({}, **changes))


def test_a_command_of_the_users_own_gets_node_and_file(tmp_path: Path) -> None:
    given = flow({"launcher": "command", "command": "ssh box 'spillway node' {file} --name {node}"})
    assert given.cluster is not None
    command = command_of(given.cluster, Path("/x/flow.yaml"), "node-7")
    assert command == ["ssh", "box", "spillway node", "/x/flow.yaml", "--name", "node-7"]


def test_the_users_line_is_run_and_what_it_prints_is_kept(tmp_path: Path) -> None:
    line = f"{sys.executable} -c 'import sys; print(sys.argv[1:])' {{node}} {{file}}"
    given = flow({"launcher": "command", "command": line})
    assert given.cluster is not None
    launcher_of(given.cluster, tmp_path / "flow.yaml", tmp_path / "logs")("node-7")
    log, deadline_s = tmp_path / "logs" / "node-7.log", time.monotonic() + 60.0
    while not log.read_text().endswith("\n") and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert log.read_text() == f"['node-7', '{tmp_path}/flow.yaml']\n"


def test_a_line_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    given = flow({"launcher": "command", "command": "/no/such/program {node}"})
    assert given.cluster is not None
    launch = launcher_of(given.cluster, tmp_path / "flow.yaml", tmp_path / "logs")
    with pytest.raises(SpillwayError, match=r"node 'node-1' cannot be started: /no/such/program"):
        launch("node-1")

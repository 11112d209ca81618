"""Whoever reads a cluster's control log learns no password; every node looks it up for itself."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from spillway import redaction
from spillway.check.flow_file import load_as_written, load_flow
from spillway.cli.app import app
from spillway.coding import from_json
from spillway.errors import SpillwayError
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.coordinating import Coordinating
from spillway.hosts.cluster.messages import FLOW, QUERY, Assignment, FlowGiven
from spillway.hosts.cluster.opening import Place, place_of
from spillway.hosts.cluster.written import flow_of, query_of, require_references

KAFKA = {"brokers": "h:9092", "topic": "out", "kafka.sasl.password": "${PASSWORD}"}
FLOW_FILE: dict[str, Any] = {
    "streams": {
        "s": {
            "source": "kafka",
            "columns": {"a": "string"},
            "options": {
                "topic": "t",
                "kafka.bootstrap.servers": "h:9092",
                "kafka.sasl.password": "${file:password}",
            },
        }
    },
    "classes": {"default": {"delay": "2s"}},
    "queries": {"q": {"sql": "SELECT a FROM s", "sink": {"type": "kafka", **KAFKA}}},
    "spark": {"config": {"spark.ssl.keyPassword": "${PASSWORD}"}},
    "cluster": {"launcher": "none"},
}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setenv("PASSWORD", "hunter2hunter2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text("swordfish\n")


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "flow.yaml"
    path.write_text(yaml.safe_dump({**FLOW_FILE, **changes}))
    return path


def opened(path: Path) -> Place:
    load_flow(path)
    return place_of(path, load_as_written(path))


def test_no_file_of_a_cluster_holds_a_secret_and_a_node_has_them_all(tmp_path: Path) -> None:
    place = opened(written(tmp_path))
    said: list[str] = []
    coordinating = Coordinating(place, said.append)
    for _ in range(200):
        coordinating.step()
        if coordinating.leads:
            break
    assert coordinating.leads
    coordinating.step()
    texts = [path.read_text() for path in place.folder.rglob("*") if path.is_file()]
    assert any("${PASSWORD}" in text for text in texts)
    assert not any("hunter2" in text or "swordfish" in text for text in [*texts, *said])

    log = Latest(place.assignments())
    log.read_on()
    given = from_json(FlowGiven, log.by_key[FLOW].record.body or {})
    flow = flow_of(given, tmp_path)
    assert flow.streams["s"].options["kafka.sasl.password"] == "swordfish"
    assert flow.spark.config["spark.ssl.keyPassword"] == "hunter2hunter2"
    assignment = from_json(Assignment, log.by_key[QUERY + "q"].record.body or {})
    query = query_of("q", assignment.query, tmp_path)
    assert query.sink == load_flow(place.file).queries["q"].sink


def test_a_node_that_lacks_a_secret_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"sql": "SELECT a FROM s", "sink": {"type": "kafka", **KAFKA}}
    monkeypatch.delenv("PASSWORD")
    with pytest.raises(SpillwayError, match=r"queries\.q\.sink\.kafka\.sasl\.password refers to"):
        query_of("q", body, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("kafka.sasl.password", "hunter2"), ("url", "postgresql://me:hunter2@h/db")],
)
def test_a_secret_that_is_written_out_is_refused(tmp_path: Path, key: str, value: str) -> None:
    queries = {"q": {"sql": "SELECT a FROM s", "sink": {"type": "noop"}}}
    require_references({"queries": queries})
    queries["q"]["sink"][key] = value  # type: ignore[index]
    with pytest.raises(SpillwayError, match="is a secret that is written out") as refused:
        require_references({"queries": queries})
    assert "hunter2" not in str(refused.value)


def test_a_flow_of_one_node_may_hold_one(tmp_path: Path) -> None:
    sink = {**KAFKA, "type": "kafka", "kafka.sasl.password": "written out"}
    queries = {"q": {"sql": "SELECT a FROM s", "sink": sink}}
    path = written(tmp_path, queries=queries)
    assert load_flow(path).queries["q"].sink is not None
    with pytest.raises(SpillwayError, match=r"queries\.q\.sink\.kafka\.sasl\.password is a secret"):
        opened(path)


def test_the_control_log_of_a_cluster_has_a_password_of_its_own(tmp_path: Path) -> None:
    control = {"type": "kafka", "brokers": "h:9092", "sasl.password": "${PASSWORD}"}
    place = opened(written(tmp_path, cluster={"launcher": "none", "control": control}))
    log: Any = place.reports()
    assert log._settings["sasl.password"] == "hunter2hunter2"
    assert "hunter2" not in str(SpillwayError("hunter2hunter2"))


def test_a_check_shows_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spillway.hosts.cluster.folder import FolderLog

    control = {"type": "kafka", "brokers": "h:9092", "sasl.password": "hunter2hunter2"}
    path = written(tmp_path, cluster={"launcher": "none", "control": control})
    place: Any = Place
    monkeypatch.setattr(
        place, "_open", lambda self, which: FolderLog(tmp_path / "log" / which, "flow")
    )
    done = CliRunner().invoke(app, ["cluster", "check", str(path), "--json"])
    assert done.exit_code == 0, done.output
    assert "hunter2" not in done.output
    assert json.loads(done.output)["cluster"]["control"]["sasl.password"] == redaction.HIDDEN

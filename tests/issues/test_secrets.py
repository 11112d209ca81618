"""Where passwords lay, and where they come from now."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spillway import redaction
from spillway.check.flow_file import load_flow
from spillway.errors import SpillwayError
from spillway.gate.offsets import Offset
from spillway.gate.rules import Stretch
from spillway.hosts.spark.planner import joint
from spillway.hosts.spark.planner.joint import Joint
from spillway.hosts.spark.planner.sharing import Sharing, told_at
from spillway.sinks.catalog import given_to
from spillway.sinks.kafka import _settings
from spillway.testing import ToyLog

FLOW = """\
streams:
  s:
    source: kafka
    options:
      topic: t
      kafka.bootstrap.servers: ${BROKERS}:9092
      kafka.sasl.password: %s
    columns: {a: string}
classes: {c: {delay: 2s}}
queries:
  q: {class: c, sql: SELECT a FROM s, sink: {type: parquet, path: 'out/$${x}'}}
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setenv("BROKERS", "broker")
    monkeypatch.setenv("PASSWORD", "hunter2")


def flow(tmp_path: Path, password: str) -> Path:
    path = tmp_path / "f.yaml"
    path.write_text(FLOW % password)
    return path


def test_a_flow_file_takes_passwords_from_the_environment(tmp_path: Path) -> None:
    options = load_flow(flow(tmp_path, "${PASSWORD}")).streams["s"].options
    assert options["kafka.sasl.password"] == "hunter2"
    assert options["kafka.bootstrap.servers"] == "broker:9092"
    assert "hunter2" not in str(SpillwayError("hunter2"))
    assert str(SpillwayError("broker")) == "broker"


def test_a_flow_file_takes_passwords_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    loaded = load_flow(flow(tmp_path, "${file:password}"))
    assert loaded.streams["s"].options["kafka.sasl.password"] == "hunter2"
    assert loaded.queries["q"].sink.options["path"] == "out/${x}"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${NOT_THERE}", "refers to ${NOT_THERE}, which the environment has not: set it"),
        ("${file:nothing}", "which cannot be read: No such file"),
        ("'${a b}'", "write ${NAME} for a variable of the environment"),
        ("${}", "write ${NAME} for a variable of the environment"),
    ],
)
def test_what_is_not_there_is_told_with_its_place(
    tmp_path: Path, reference: str, expected: str
) -> None:
    path = flow(tmp_path, reference)
    with pytest.raises(SpillwayError) as caught:
        load_flow(path)
    [line] = caught.value.problems
    assert line.startswith(f"{path}:7: streams.s.options.kafka.sasl.password ")
    assert expected in line


def member(folder: Path, name: str, seen: list[Mapping[str, str]]) -> Joint:
    def opened(options: Mapping[str, str]) -> Any:
        seen.append(options)
        return ToyLog()

    given = {"source": "toy", "path": name, "kafka.sasl.password": "hunter2"}
    return Joint("q", given, open_log=opened, folder=folder, member=name, elapsed=lambda: 1.0)


def test_gates_of_one_query_open_each_others_logs_and_no_file_has_the_password(
    tmp_path: Path,
) -> None:
    seen: list[Mapping[str, str]] = []
    gates = [member(tmp_path, name, seen) for name in ("left", "right")]
    at = Offset(
        gate="g",
        began_us=0,
        seq=0,
        planned_us=0,
        stretches=(Stretch(partition=0, start=0, read=0, stop=0),),
    )
    for gate in gates:
        gate.enter(at)
    gates[0].company(1001.0)
    assert [options["path"] for options in seen] == ["right"]
    assert seen[0]["kafka.sasl.password"] == "hunter2"
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert not any("hunter2" in text for text in written)


def test_options_are_only_asked_for_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    sharing = Sharing(lambda: {"a": "b"})
    assert told_at(sharing.path) == {"a": "b"}
    os.chmod(os.path.dirname(sharing.path), 0o755)
    with pytest.raises(PermissionError):
        told_at(sharing.path)
    sharing.close()
    assert not Path(sharing.path).parent.exists()


@pytest.mark.parametrize("name", ["../../x", "a/b", "x" * 400, "\0"])
def test_the_name_of_a_joint_makes_no_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint, "private_folder_of_user", lambda: tmp_path / "mine")
    made = joint._private_folder(name)
    assert made.parent == tmp_path / "mine"
    assert made.stat().st_mode & 0o077 == 0


def test_the_kafka_sink_takes_the_options_of_the_source() -> None:
    from spillway.flow.flow import Sink

    sink = {
        "type": "kafka",
        "brokers": "h:9",
        "topic": "t",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.password": "hunter2",
        "kafka.linger.ms": 50,
    }
    settings = dict(_settings(given_to("q", Sink.model_validate(sink))))
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.password"] == "hunter2"
    assert settings["linger.ms"] == "50"
    assert settings["bootstrap.servers"] == "h:9"
    sink["kafka.sasl.jaas.config"] = "x"
    with pytest.raises(SpillwayError, match="for Java clients only"):
        _settings(given_to("q", Sink.model_validate(sink)))


def test_a_failure_behind_the_page_tells_no_secret() -> None:
    import asyncio

    from spillway.watch.service import _failed

    redaction.remember_value("hunter2")
    request: Any = None
    answer = asyncio.run(_failed(request, RuntimeError("no\nway with hunter2 " + "x" * 9999)))
    assert b"hunter2" not in bytes(answer.body)
    assert len(bytes(answer.body)) < 1000

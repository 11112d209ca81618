"""What `spillway doctor` finds, each with its fix."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spillway.check import doctor
from spillway.check.doctor import findings
from spillway.cli.app import app


def found(about: str, folder: Path, brokers: str | None = None) -> doctor.Finding:
    [finding] = [f for f in findings(brokers, folder) if f.about == about]
    return finding


def test_this_machine_is_told_as_it_is(tmp_path: Path) -> None:
    assert found("Python", tmp_path).fix == ""
    assert found("PySpark", tmp_path).fix == ""
    assert found("sockets", tmp_path).fix == ""
    assert found("storage", tmp_path / "not" / "there").fix == ""


def test_no_java_is_told_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = found("Java", tmp_path)
    assert "which has no bin/java" in finding.found
    assert "JAVA_HOME" in finding.fix


def test_another_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "17, 21" in found("Java", tmp_path).fix


def test_an_old_or_missing_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": "3.5.1", "pandas": "3.0.0"}
    monkeypatch.setattr(doctor, "_installed", versions.get)
    assert "needs 4.2 or newer" in found("PySpark", tmp_path).fix
    assert "pandas<3" in found("pandas", tmp_path).fix
    monkeypatch.setattr(doctor, "find_spec", lambda module: None)
    missing = found("extra 'kafka'", tmp_path)
    assert ("spillway-spark[kafka]" in missing.fix, missing.needed) == (True, False)


def test_a_full_disk_and_a_clock_that_was_never_set_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LEAST_FREE_BYTES", 1 << 62)
    assert "make room" in found("disk", tmp_path).fix
    monkeypatch.setattr("spillway.check.doctor.time.time", lambda: 0.0)
    assert "NTP" in found("clock", tmp_path).fix


def test_brokers_that_do_not_answer_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_ANSWER_S", 0.5)
    finding = found("brokers", tmp_path, "127.0.0.1:1")
    assert "127.0.0.1:1 does not answer" in finding.found
    assert "firewall" in finding.fix


def test_the_command_says_it_all_and_exits_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["doctor", "--json", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert {f["about"] for f in json.loads(done.stdout)} >= {"Java", "PySpark", "disk", "clock"}
    assert CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path)]).exit_code == 1

"""The wheel in an environment of its own, with its dependencies and no others."""

import importlib.util
import json
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ENTRY = "from spillway.cli.app import main; main()"


def closure(requirements: list[str]) -> dict[str, Distribution]:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "scripts" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    sbom: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sbom)
    found: dict[str, Distribution] = sbom.closure(requirements)
    return found


def link(distribution: Distribution, into: Path) -> None:
    """What it has installed, as it is here."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__", "/"}
    for top in tops:
        if not (into / top).exists():
            (into / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the clean environment."""
    out, folder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("clean")
    program = "import hatchling.build as h, sys; print(h.build_wheel(sys.argv[1]))"
    command = [sys.executable, "-B", "-c", program, str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = (folder / "lib").glob("python*/site-packages")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for distribution in closure(declared).values():
        link(distribution, site)
    zipfile.ZipFile(out / done.stdout.split()[-1]).extractall(site)
    return folder / "bin" / "python"


def spillway(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-I", "-c", ENTRY, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_it_needs_nothing_that_it_does_not_declare(python: Path, tmp_path: Path) -> None:
    told = spillway(python, "--version", cwd=tmp_path)
    assert told.stdout.startswith("spillway "), told.stderr
    flow = ROOT / "examples" / "overload.yaml"
    for words, code in ((["check", str(flow)], 0), (["check", "--schema"], 0), (["bench", "x"], 2)):
        done = spillway(python, *words, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
    for absent in ("matplotlib", "starlette", "confluent_kafka", "psycopg", "spillway_lab", "pip"):
        command = [str(python), "-I", "-c", f"import {absent}"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 1, absent


@pytest.mark.slow
def test_it_runs_a_flow_to_the_tuple(python: Path, tmp_path: Path) -> None:
    flow, folder = ROOT / "examples" / "overload.yaml", tmp_path / "run"
    words = ("run", str(flow), "--duration", "15s", "--folder", str(folder), "--json")
    done = spillway(python, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["queries"]
    ledgers = sorted((folder / "ledgers").glob("*.jsonl"))
    assert ledgers
    for ledger in ledgers:
        audit = spillway(python, "ledger", str(ledger), "--json", cwd=tmp_path)
        assert audit.returncode == 0, audit.stderr
        assert json.loads(audit.stdout)["gates"][0]["exact"] is True
